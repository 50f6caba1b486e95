"""What is known about one model behind one upstream, and who says so.

Facts are sparse: `said` names the fields that somebody spoke of, and `over` lets those with more to say speak first.

>>> ModelFacts(dialect="hermes").over(ModelFacts(dialect="pythonic", few_shot=True)).few_shot
True
"""

from dataclasses import Field, dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from toolspeak.declaration import setting
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.quirks import QUIRKS, Quirks

DEFAULT_DIALECT: Final = "fenced"
"""What a model is taught that has no better one."""
_FAMILY: Final = "that of its family"
_QUIRK: Final = "quirks."
QUIRKS_IDS: Final = f"{_QUIRK}ids"
QUIRKS_CONSTRAINT: Final = f"{_QUIRK}constraint"


class Support(StrEnum):
    """What became of `tools` when they were sent."""

    NATIVE = "native"
    NONE = "none"
    """Refused, or dropped in silence."""
    LEAKS = "leaks"
    """The model calls, but the server returns some calls as text."""
    UNKNOWN = "unknown"


class Constrain(StrEnum):
    """How much an upstream is asked to keep an emulated answer in form, where it can (CHK-8)."""

    OFF = "off"
    RETRY = "retry"
    """Only where a call must come, or when it is asked again because a call was bad."""
    TEXT = "text"
    """Text is free, and a call that is begun can only be a right one."""
    JSON = "json"
    """The whole answer is JSON: a thought, then calls or the answer."""


class Source(StrEnum):
    """Who says what becomes of tools; the later one is believed (CAP-3)."""

    NOBODY = "nobody"
    TABLE = "table"
    """What is written here about all models of a vendor."""
    MEASURED = "measured"
    """A probe, or traffic."""
    SAID = "said"
    """The user: configuration, override."""


_RANKS: Final = {source: rank for rank, source in enumerate(Source)}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The defaults are those of a model that nobody knows."""

    tools: Support = Support.UNKNOWN
    dialect: str = setting(
        "",
        "[Dialect](dialects.md) of calls that the model is taught where they are emulated.",
        otherwise="that of its family",
        form="dialect",
    )
    decides: bool = setting(False, "The model does better with the strategy `decision`.", otherwise=_FAMILY)
    calls_in_reasoning: bool = setting(False, "Its reasoning may contain calls.", otherwise=_FAMILY)
    starts_in_reasoning: bool = setting(False, "Its answers begin in reasoning, without a mark.", otherwise=_FAMILY)
    few_shot: bool = setting(False, "Show the model an example of a call.", otherwise=_FAMILY)
    answer_tool: bool = setting(False, "Let the model answer by a call, too.", otherwise=_FAMILY)
    context_tokens: int | None = setting(
        None, "Context length of the model.", unit="tokens", least=1, otherwise="its family's, or unknown"
    )
    constraint: Constrain | None = setting(
        None, "Constrained decoding that suits the model best, where its upstream has it.", otherwise="unknown"
    )
    quirks: Quirks = QUIRKS
    leaks_as: str = ""
    """The one form in which its calls leak as text; empty: whatever comes is read."""
    source: Source = Source.NOBODY
    """Who says what becomes of `tools`. Whoever makes facts without a source says it."""
    said: frozenset[str] = frozenset()
    """The fields that somebody spoke of; quirks as `quirks.ids`. What is no default is always among them."""

    def __post_init__(self) -> None:
        """Complete who says it, and what is said."""
        source = self.source if self.source is not Source.NOBODY else Source.SAID
        object.__setattr__(self, "source", Source.NOBODY if self.tools is Support.UNKNOWN else source)
        own = {field.name for field in _FIELDS if getattr(self, field.name) != field.default}
        quirks = {_QUIRK + field.name for field in fields(Quirks) if getattr(self.quirks, field.name) != field.default}
        object.__setattr__(self, "said", self.said | own | quirks)

    def over(self, weaker: "ModelFacts") -> "ModelFacts":
        """Return these facts, and the other's where these say nothing."""
        if not self.said or self is weaker:
            return weaker
        own = {field.name: getattr(self, field.name) for field in _FIELDS if field.name in self.said}
        if "tools" in own:
            own["source"] = self.source
        names = (name.removeprefix(_QUIRK) for name in self.said if name.startswith(_QUIRK))
        quirks = replace(weaker.quirks, **{name: getattr(self.quirks, name) for name in names})
        return replace(weaker, **own, quirks=quirks, said=self.said | weaker.said)

    def with_tools(self, tools: Support, source: Source) -> "ModelFacts":
        """Return the facts with what this source says of tools, if it is to be believed; "unknown" says nothing."""
        believed = self.tools is Support.UNKNOWN or _RANKS[source] >= _RANKS[self.source]
        if tools is Support.UNKNOWN or not believed:
            return self
        return replace(self, tools=tools, source=source)

    def with_constraint(self, form: ConstraintForm) -> "ModelFacts":
        """Return the facts with the form of constraints that was measured, unless somebody has said one."""
        if form is ConstraintForm.NONE or QUIRKS_CONSTRAINT in self.said:
            return self
        return replace(self, quirks=replace(self.quirks, constraint=form))


_FIELDS: Final[tuple[Field[Any], ...]] = tuple(
    field for field in fields(ModelFacts) if field.name not in ("quirks", "source", "said")
)
UNKNOWN_MODEL = ModelFacts()


def without_latest(model: str) -> str:
    """Return a model's name without Ollama's default tag: `llama3.2:latest` and `llama3.2` are one model."""
    return model.removesuffix(":latest")

"""The facts about one model of one upstream, with their source.

Facts are sparse: `said` names the fields that have been stated, and `over` merges two sources field by field. A field
that was stated with its default value still wins over a weaker source, which a comparison with defaults would miss.

>>> ModelFacts(dialect="hermes").over(ModelFacts(dialect="pythonic", few_shot=True)).few_shot
True

A `Profile` is the form in which a model does best with tools: at an endpoint, measured by `doctor` (CAP-5), or on a
kind of server, measured by us (CAP-12, `shipped.py`).
"""

from dataclasses import Field, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from toolspeak.declaration import setting
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.quirks import QUIRKS, Quirks

DEFAULT_DIALECT: Final = "fenced"
"""The dialect for models without a dialect of their own."""
_FAMILY: Final = "that of its family"
_QUIRK: Final = "quirks."
QUIRKS_IDS: Final = f"{_QUIRK}ids"
QUIRKS_CONSTRAINT: Final = f"{_QUIRK}constraint"


class Support(StrEnum):
    """How an upstream handles `tools` that are sent to it."""

    NATIVE = "native"
    NONE = "none"
    """The server refuses them, or drops them silently."""
    LEAKS = "leaks"
    """The model calls, but the server returns some calls as text."""
    UNKNOWN = "unknown"


class Constrain(StrEnum):
    """How much of an emulated answer is constrained, if the upstream supports that (CHK-8)."""

    OFF = "off"
    RETRY = "retry"
    """Only if a call must come, or in a retry after a bad call."""
    TEXT = "text"
    """Text is free, and a call that is begun can only be a valid one."""
    JSON = "json"
    """The whole answer is JSON: a thought, then calls or the answer."""


class Source(StrEnum):
    """The source of `tools`, from the weakest to the strongest; a stronger one wins (CAP-3)."""

    NOBODY = "nobody"
    """There is no statement."""
    TABLE = "table"
    """A built-in table about all models of a vendor."""
    MEASURED = "measured"
    """A probe, or traffic. It wins over tables, which cannot know how a server was started."""
    SAID = "said"
    """The user, by configuration or override. Nothing wins over that."""


_RANKS: Final = {source: rank for rank, source in enumerate(Source)}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts about one model. The defaults are those of an unknown model."""

    tools: Support = Support.UNKNOWN
    dialect: str = setting(
        "",
        "[Dialect](dialects.md) of calls that the model is taught where they are emulated.",
        otherwise="that of its family",
        form="dialect",
    )
    response_template: str = setting(
        "",
        "The model's `tokenizer_config.json`, or a file with its `response_template` alone: calls in its text are read "
        "as that describes them (CAP-8).",
        otherwise="none",
        form="template",
    )
    decides: bool = setting(False, "The model does better with the strategy `decision`.", otherwise=_FAMILY)
    calls_in_reasoning: bool = setting(False, "Its reasoning may contain calls.", otherwise=_FAMILY)
    starts_in_reasoning: bool = setting(False, "Its answers begin in reasoning, without a mark.", otherwise=_FAMILY)
    few_shot: bool = setting(False, "Show the model an example of a call.", otherwise=_FAMILY)
    answer_tool: bool = setting(False, "Let the model answer by a call, too.", otherwise=_FAMILY)
    system_role: bool = setting(
        True,
        "Its chat template has a system message; without one, emulated calls are taught in the first user message.",
        otherwise=_FAMILY,
    )
    context_tokens: int | None = setting(
        None, "Context length of the model.", unit="tokens", least=1, otherwise="its family's, or unknown"
    )
    images: bool | None = setting(
        None,
        "Whether the model reads images; requests with images [fall back](upstreams.md#another-model) only to models "
        "that do.",
        otherwise="unknown",
    )
    constraint: Constrain | None = setting(
        None, "Constrained decoding that suits the model best, where its upstream has it.", otherwise="unknown"
    )
    quirks: Quirks = QUIRKS
    leaks_as: str = ""
    """The one dialect in which its calls leak as text; empty if they are read in any dialect."""
    source: Source = Source.NOBODY
    """The source of `tools`. If facts are made without one, the caller itself is the source (SAID)."""
    said: frozenset[str] = frozenset()
    """The fields that were stated; quirks are named like `quirks.ids`. Fields with another value than their default are
    added."""

    def __post_init__(self) -> None:
        """Fill in `source` and `said`."""
        # The class is frozen, so `__setattr__` of `object` is the only way to complete its fields.
        source = self.source if self.source is not Source.NOBODY else Source.SAID
        object.__setattr__(self, "source", Source.NOBODY if self.tools is Support.UNKNOWN else source)
        own = {field.name for field in _FIELDS if getattr(self, field.name) != field.default}
        quirks = {_QUIRK + field.name for field in fields(Quirks) if getattr(self.quirks, field.name) != field.default}
        object.__setattr__(self, "said", self.said | own | quirks)

    def over(self, weaker: "ModelFacts") -> "ModelFacts":
        """Return these facts, and those of `weaker` for fields that these do not state."""
        if not self.said or self is weaker:
            return weaker
        own = {field.name: getattr(self, field.name) for field in _FIELDS if field.name in self.said}
        if "tools" in own:
            own["source"] = self.source
        names = (name.removeprefix(_QUIRK) for name in self.said if name.startswith(_QUIRK))
        quirks = replace(weaker.quirks, **{name: getattr(self.quirks, name) for name in names})
        return replace(weaker, **own, quirks=quirks, said=self.said | weaker.said)

    def with_tools(self, tools: Support, source: Source) -> "ModelFacts":
        """Return the facts with `tools` from a source, unless a stronger one has stated it; UNKNOWN changes nothing."""
        # Of two statements with the same rank the newer one wins.
        believed = self.tools is Support.UNKNOWN or _RANKS[source] >= _RANKS[self.source]
        if tools is Support.UNKNOWN or not believed:
            return self
        return replace(self, tools=tools, source=source)

    def with_constraint(self, form: ConstraintForm) -> "ModelFacts":
        """Return the facts with a measured form of constraints, unless one was stated."""
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


FORMAT = 1
Setting: TypeAlias = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one form: right answers, tasks, calls where none was wanted, and a score from 0 to 1."""

    right: int
    asked: int
    spurious: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The winning form, and the scores of all. Overrides the built-in tables; overridden by user settings."""

    model: str
    endpoint: str
    form: str
    """The name of the winning form."""
    settings: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """The settings of the winner, by the names of `Settings`. Unknown keys are ignored, so newer profiles load in older
    versions."""
    tools: Support | None = None
    """What the upstream does with tools, if a native form won."""
    scores: dict[str, Score] = field(default_factory=dict[str, Score])
    """The scores of all forms that were tried, by name."""
    verdict: str = ""
    """The result in words."""
    fingerprint: str = ""
    """The fingerprint of the measured server; empty if unknown. If the server at this endpoint has another one, the
    profile is void."""
    constraint: ConstraintForm = ConstraintForm.NONE
    """The form of constraints of that server. It is stored because a client that uses the profile may not probe."""
    date: str = ""
    version: str = ""
    """The version of toolspeak that measured."""
    format: int = FORMAT

    @property
    def is_shipped(self) -> bool:
        """Whether it came with toolspeak. The doctor measures at an endpoint."""
        return not self.endpoint

    @property
    def measured(self) -> str:
        """Whether the doctor or toolspeak's developers measured it, and on which date."""
        return f"{'shipped with toolspeak' if self.is_shipped else 'doctor'}, {self.date}"

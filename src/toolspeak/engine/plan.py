"""Decides the plan of a turn from the settings and the facts about the model, once; it is frozen until the turn ends.

Frozen, because facts change while a turn runs: other requests and probes move them. A turn that planned anew after each
answer could teach its tools in one dialect and read the answer in another (MODE-5).

>>> decide(request, Settings(), ModelFacts(tools=Support.NONE)).line
'force inline fenced checked: the upstream has no tools'
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from toolspeak.declaration import setting
from toolspeak.engine.guardrails.catalogue import GUARDRAILS, guardrails_for
from toolspeak.engine.guardrails.guardrail import Guardrail
from toolspeak.facts.model import DEFAULT_DIALECT, UNKNOWN_MODEL, Constrain, ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode

DECISION_DIALECT = "decision_json"
JSON_DIALECT = "steps_json"
"""The dialect in which the whole answer is JSON, for the constraint `json`."""
ANY_DIALECT = "any"
"""The dialect that reads the calls of all others; it cannot be taught."""
RETRIES = 2
"""How many times a model is asked again by default. Retries of failed connections are counted elsewhere (CHK-5)."""
MOST_RETRIES = 10
_NO = "`false`"
_SUITS = "what suits the model"


class Mode(StrEnum):
    """The setting: whether calls are emulated (MODE-1)."""

    OFF = "off"
    FALLBACK = "fallback"
    FORCE = "force"
    AUTO = "auto"


class Way(StrEnum):
    """The decision: how this turn handles tools."""

    PLAIN = "plain"
    """The request goes upstream without tools."""
    OFF = "off"
    """Tools go upstream unchanged, and the answer comes back unchanged (MODE-2)."""
    NATIVE = "native"
    """Tools go upstream; calls are checked, and leaked ones rescued."""
    FALLBACK = "fallback"
    """As NATIVE; if the answer has no call, emulated (MODE-3)."""
    FORCE = "force"
    """Emulated (MODE-4)."""


class Strategy(StrEnum):
    """How calls are emulated (MODE-7)."""

    INLINE = "inline"
    DECISION = "decision"


class Release(StrEnum):
    """When the client gets the answer (CHK-7)."""

    EAGER = "eager"
    CHECKED = "checked"
    BUFFERED = "buffered"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one level: a request, a model, an upstream or all. None leaves one to the next level (MODE-1)."""

    mode: Mode | None = setting(
        None,
        "Whether calls are emulated: never (`off`), where a native answer has none (`fallback`), always (`force`), or "
        "where the upstream has no tools (`auto`).",
        otherwise="`auto`",
    )
    chat: bool | None = setting(None, "Remove all tools from requests (MODE-6).", otherwise=_NO)
    strategy: Strategy | None = setting(
        None,
        "How calls are emulated: inside the answer, or by a decision before it.",
        otherwise="`inline`, or what suits the model",
    )
    dialect: str | None = setting(
        None,
        "[Dialect](dialects.md) in which emulated calls are written.",
        otherwise="what suits the model",
        form="dialect",
    )
    release: Release | None = setting(
        None,
        "When the client gets the answer: at once, calls after their check, or everything at its end (CHK-7).",
        otherwise="`checked`",
    )
    retries: int | None = setting(
        None,
        "How many times a model is asked again for a call that cannot run.",
        least=0,
        most=MOST_RETRIES,
        otherwise=str(RETRIES),
    )
    rescue: bool | None = setting(
        None, "Turn calls that a server with tools leaks as text into calls.", otherwise="`true`"
    )
    keep_system: bool | None = setting(
        None, "Keep the client's own instructions beside ours.", otherwise="`true` in the mode `auto`, else `false`"
    )
    few_shot: bool | None = setting(None, "Show the model an example of a call.", otherwise=_SUITS)
    answer_tool: bool | None = setting(None, "Let the model answer by a call, too.", otherwise=_SUITS)
    constraint: Constrain | None = setting(
        None,
        "[Constrained decoding](constraint.md) of emulated calls, where the server has it (CHK-8).",
        otherwise="what suits the model, else `retry`",
    )
    drop_unrelated_calls: bool | None = setting(
        None, "Drop calls whose tool has nothing to do with the conversation (CHK-10).", otherwise=_NO
    )
    drop_unmentioned_arguments: bool | None = setting(
        None, "Drop optional arguments whose value the conversation does not mention (CHK-11).", otherwise=_NO
    )
    request_missing_calls: bool | None = setting(
        None, "Ask for the calls that a request for several things still needs (CHK-12).", otherwise=_NO
    )
    accept_untaught_calls: bool | None = setting(
        None, "Accept, or ask for, calls that no dialect reads; the answer is buffered (CHK-13).", otherwise=_NO
    )
    confirm_tool_fit: bool | None = setting(
        None,
        "Ask the model whether each tool that it calls can do the request; the answer is buffered (CHK-14).",
        otherwise=_NO,
    )
    key: str | None = None
    """The key of keyed markers (SAFE-4). toolspeak makes it: it is not in the file."""

    def over(self, other: "Settings") -> "Settings":
        """Return these settings, filled up with the other's where these are None."""
        if self is NOTHING_SAID or self is other:
            return other
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


NOTHING_SAID = Settings()


@dataclass(frozen=True, slots=True)
class Plan:
    """How a turn is run, and why: the settings, with facts and defaults where they say nothing."""

    way: Way
    why: str
    """The reason for `way`, for logs, headers and traces."""
    strategy: Strategy = Strategy.INLINE
    dialect: str = DEFAULT_DIALECT
    release: Release = Release.CHECKED
    retries: int = RETRIES
    rescue: bool = True
    keep_system: bool = True
    few_shot: bool = False
    answer_tool: bool = False
    key: str = ""
    calls_in_reasoning: bool = False
    starts_in_reasoning: bool = False
    context_tokens: int | None = None
    projects: bool = False
    """Whether calls and results of the history are sent as text, because this upstream does not understand them."""
    rescue_dialect: str = ANY_DIALECT
    """The dialect in which leaked calls of a native answer are read (MODE-8)."""
    constraint: Constrain = Constrain.OFF
    form: ConstraintForm = ConstraintForm.NONE
    """The field in which the upstream takes the constraint."""
    guardrails: tuple[Guardrail, ...] = ()
    """The guardrails that the settings ask for and that apply to the request, in the order in which they judge."""

    @property
    def line(self) -> str:
        """The plan in one line, for logs and headers."""
        how = f" {self.strategy} {self.dialect}" if self.way in (Way.FORCE, Way.FALLBACK) else ""
        return f"{self.way}{how} {self.release}: {self.why}"


def decide(request: Request, settings: Settings = NOTHING_SAID, facts: ModelFacts = UNKNOWN_MODEL) -> Plan:
    """Return the plan of a request. Settings win over facts, and facts over defaults."""
    way, why = _way(request, settings, facts)
    constraint = _constraint(settings, facts)
    strategy = settings.strategy or (Strategy.DECISION if facts.decides else Strategy.INLINE)
    in_json = constraint is Constrain.JSON and strategy is Strategy.INLINE
    guardrails = guardrails_for(request, [name for name in GUARDRAILS if getattr(settings, name)])
    return Plan(
        way,
        why,
        strategy=strategy,
        dialect=_dialect(strategy, constraint, settings, facts),
        release=_release(request, settings, buffers=any(guardrail.buffers for guardrail in guardrails)),
        retries=RETRIES if settings.retries is None else settings.retries,
        rescue=settings.rescue is not False,
        # Decisions of the modes `force` and `fallback` follow DEC-1 to the letter and drop the client's system prompt.
        # `auto` keeps it, because dropping it loses instructions (DEC-6).
        keep_system=settings.mode in (None, Mode.AUTO) if settings.keep_system is None else settings.keep_system,
        few_shot=facts.few_shot if settings.few_shot is None else settings.few_shot,
        # An answer that is JSON as a whole has no place for text but a call of the answer tool.
        answer_tool=in_json or (facts.answer_tool if settings.answer_tool is None else settings.answer_tool),
        key=settings.key or "",
        calls_in_reasoning=facts.calls_in_reasoning,
        starts_in_reasoning=facts.starts_in_reasoning,
        context_tokens=facts.context_tokens,
        projects=settings.mode is Mode.FORCE or facts.tools is Support.NONE or bool(settings.chat),
        rescue_dialect=settings.dialect or facts.leaks_as or ANY_DIALECT,
        constraint=constraint,
        form=facts.quirks.constraint,
        guardrails=guardrails,
    )


def _way(request: Request, settings: Settings, facts: ModelFacts) -> tuple[Way, str]:
    mode = settings.mode or Mode.AUTO
    if settings.chat:
        return Way.PLAIN, "chat mode: no tools at all"
    if mode is Mode.OFF:
        return Way.OFF, "the mode is off"
    if not request.tools and not has_calls(request):
        return Way.PLAIN, "the request has no tools"
    if request.choice.mode is ChoiceMode.NONE:
        return Way.PLAIN, "the tool choice is none"
    if mode is not Mode.AUTO:
        return Way(mode.value), f"the mode is {mode}"
    return _way_of(facts.tools)


def _way_of(support: Support) -> tuple[Way, str]:
    match support:
        case Support.NATIVE:
            return Way.NATIVE, "the upstream has tools"
        case Support.LEAKS:
            return Way.NATIVE, "the upstream has tools, and leaks some calls"
        case Support.NONE:
            return Way.FORCE, "the upstream has no tools"
        case Support.UNKNOWN:
            return Way.NATIVE, "nothing is known: native first, emulated if that is refused"


def _dialect(strategy: Strategy, constraint: Constrain, settings: Settings, facts: ModelFacts) -> str:
    if strategy is Strategy.DECISION:
        return DECISION_DIALECT
    if constraint is Constrain.JSON:
        return JSON_DIALECT
    return settings.dialect or facts.dialect or DEFAULT_DIALECT


def _constraint(settings: Settings, facts: ModelFacts) -> Constrain:
    """Return how much to constrain; by default only retries, because small models reason worse under a grammar."""
    if facts.quirks.constraint is ConstraintForm.NONE:
        return Constrain.OFF
    return settings.constraint or facts.constraint or Constrain.RETRY


def _release(request: Request, settings: Settings, *, buffers: bool) -> Release:
    if buffers or request.choice.mode in (ChoiceMode.REQUIRED, ChoiceMode.NAMED):
        return Release.BUFFERED  # text that has left could not be taken back for the call that must come
    return settings.release or Release.CHECKED


def has_calls(request: Request) -> bool:
    """Return whether the history of a request has calls."""
    return any(isinstance(part, Call) for message in request.messages for part in message.parts)

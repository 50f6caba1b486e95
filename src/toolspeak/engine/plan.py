"""What is done with a request, decided once, from what is known and what was asked for; frozen for the whole turn.

>>> decide(request, Settings(), ModelFacts(tools=Support.NONE)).line
'force inline fenced checked: the upstream has no tools'
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from toolspeak.engine.guardrails.catalogue import GUARDRAILS, guardrails_for
from toolspeak.engine.guardrails.guardrail import Guardrail
from toolspeak.facts.model import DEFAULT_DIALECT, UNKNOWN_MODEL, Constrain, ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode

DECISION_DIALECT = "decision_json"
JSON_DIALECT = "steps_json"
"""Whose whole answer is JSON, for a constraint that asks for that."""
ANY_DIALECT = "any"
RETRIES = 2


class Mode(StrEnum):
    """What the caller wants (MODE-1)."""

    OFF = "off"
    FALLBACK = "fallback"
    FORCE = "force"
    AUTO = "auto"


class Way(StrEnum):
    """What is done."""

    PLAIN = "plain"
    """No tools at all."""
    OFF = "off"
    """Tools go upstream untouched, and the answer comes back untouched (MODE-2)."""
    NATIVE = "native"
    """Tools go upstream; calls are checked, and leaked ones rescued."""
    FALLBACK = "fallback"
    """As NATIVE; without a call, emulated (MODE-3)."""
    FORCE = "force"
    """Emulated (MODE-4)."""


class Strategy(StrEnum):
    """How calls are emulated (MODE-7)."""

    INLINE = "inline"
    DECISION = "decision"


class Release(StrEnum):
    """When the client gets what (CHK-7)."""

    EAGER = "eager"
    CHECKED = "checked"
    BUFFERED = "buffered"


@dataclass(frozen=True, slots=True)
class Settings:
    """What somebody asked for; None leaves it to those with less to say (MODE-1)."""

    mode: Mode | None = None
    chat: bool | None = None
    """No tools, whatever the client sends (MODE-6)."""
    strategy: Strategy | None = None
    dialect: str | None = None
    release: Release | None = None
    retries: int | None = None
    rescue: bool | None = None
    keep_system: bool | None = None
    few_shot: bool | None = None
    answer_tool: bool | None = None
    constraint: Constrain | None = None
    drop_unrelated_calls: bool | None = None
    """Drop calls whose tool has nothing to do with the conversation (CHK-10)."""
    drop_unmentioned_arguments: bool | None = None
    """Drop optional arguments whose value the conversation does not mention (CHK-11)."""
    request_missing_calls: bool | None = None
    """Ask for the calls that a request for several things still needs (CHK-12)."""
    accept_untaught_calls: bool | None = None
    """Accept, or ask for, calls that no dialect reads; the answer is buffered (CHK-13)."""
    confirm_tool_fit: bool | None = None
    """Ask the model whether each tool that it calls can do the request; the answer is buffered (CHK-14)."""
    key: str | None = None
    """Of keyed markers (SAFE-4)."""

    def over(self, other: "Settings") -> "Settings":
        """Return these settings, and the other's where these say nothing."""
        if self is NOTHING_SAID or self is other:
            return other
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


NOTHING_SAID = Settings()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, and why."""

    way: Way
    why: str
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
    """Calls and results of the history are written as text: this upstream would not understand them."""
    rescue_dialect: str = ANY_DIALECT
    """How leaked calls are read in a native answer (MODE-8)."""
    constraint: Constrain = Constrain.OFF
    form: ConstraintForm = ConstraintForm.NONE
    """How the upstream is told."""
    guardrails: tuple[Guardrail, ...] = ()
    """Those that were asked for and apply to the request, in the order in which they judge."""

    @property
    def line(self) -> str:
        """Say it in one line."""
        how = f" {self.strategy} {self.dialect}" if self.way in (Way.FORCE, Way.FALLBACK) else ""
        return f"{self.way}{how} {self.release}: {self.why}"


def decide(request: Request, settings: Settings = NOTHING_SAID, facts: ModelFacts = UNKNOWN_MODEL) -> Plan:
    """Make the plan of a request."""
    way, why = _way(request, settings, facts)
    constraint = _constraint(settings, facts)
    strategy = settings.strategy or (Strategy.DECISION if facts.decides else Strategy.INLINE)
    in_json = constraint is Constrain.JSON and strategy is Strategy.INLINE
    guardrails = guardrails_for(request, [name for name in GUARDRAILS if getattr(settings, name)])
    return Plan(
        way,
        why,
        strategy,
        _dialect(strategy, constraint, settings, facts),
        _release(request, settings, buffers=any(guardrail.buffers for guardrail in guardrails)),
        RETRIES if settings.retries is None else settings.retries,
        settings.rescue is not False,
        settings.mode in (None, Mode.AUTO) if settings.keep_system is None else settings.keep_system,
        facts.few_shot if settings.few_shot is None else settings.few_shot,
        in_json or (facts.answer_tool if settings.answer_tool is None else settings.answer_tool),
        settings.key or "",
        facts.calls_in_reasoning,
        facts.starts_in_reasoning,
        facts.context_tokens,
        settings.mode is Mode.FORCE or facts.tools is Support.NONE or bool(settings.chat),
        settings.dialect or facts.leaks_as or ANY_DIALECT,
        constraint,
        facts.quirks.constraint,
        guardrails,
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
    """Ask for form where it costs least: small models think worse in a form that they must keep to (CHK-8)."""
    if facts.quirks.constraint is ConstraintForm.NONE:
        return Constrain.OFF
    return settings.constraint or facts.constraint or Constrain.RETRY


def _release(request: Request, settings: Settings, *, buffers: bool) -> Release:
    if buffers or request.choice.mode in (ChoiceMode.REQUIRED, ChoiceMode.NAMED):
        return Release.BUFFERED  # a text that leaves could not be taken back for the call that must come
    return settings.release or Release.CHECKED


def has_calls(request: Request) -> bool:
    """Return whether the history has calls."""
    return any(isinstance(part, Call) for message in request.messages for part in message.parts)

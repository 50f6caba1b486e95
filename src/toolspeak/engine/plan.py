"""Decides the plan of a turn from the settings and the facts about the model, once; it is frozen until the turn ends.

Frozen, because facts change while a turn runs: other requests and probes move them. A turn that planned anew after each
answer could teach its tools in one dialect and read the answer in another (MODE-5).

>>> decide(request, Settings(), ModelFacts(tools=Support.NONE)).line
'force inline fenced checked: the upstream has no tools'
"""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.engine.guardrails import GUARDRAILS, guardrails_for
from toolspeak.engine.guardrails.guardrail import Guardrail
from toolspeak.engine.settings import NOTHING_SAID, RETRIES, Mode, Release, Settings, Strategy
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

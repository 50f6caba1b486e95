"""Decides the plan of a turn from the settings and the facts about the model, once; it is frozen until the turn ends.

Frozen, because facts change while a turn runs: other requests and probes move them. A turn that planned anew after each
answer could teach its tools in one dialect and read the answer in another (MODE-5).

>>> decide(request, Settings(), ModelFacts(tools=Support.NONE)).line
'force inline fenced checked: the upstream has no tools'
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from toolspeak.engine.guardrails import GUARDRAILS, guardrails_for
from toolspeak.engine.guardrails.guardrail import Guardrail
from toolspeak.engine.settings import DEFAULTS, NOTHING_SAID, Mode, Release, Settings, Strategy
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
    """How a turn is run, and why."""

    way: Way
    why: str
    """The reason for `way`, for logs, headers and traces."""
    settings: Settings = DEFAULTS
    """The settings that the turn runs with. Only `key` may be None."""
    facts: ModelFacts = UNKNOWN_MODEL
    projects: bool = False
    """Whether calls and results of the history are sent as text, because this upstream does not understand them."""
    rescue_dialect: str = ANY_DIALECT
    """The dialect in which leaked calls of a native answer are read (MODE-8)."""
    guardrails: tuple[Guardrail, ...] = ()
    """The guardrails that the settings ask for and that apply to the request, in the order in which they judge."""

    # The type of a setting allows None, which these three uses do not.

    @property
    def dialect(self) -> str:
        """The dialect in which emulated calls are taught and read."""
        return self.settings.dialect or DEFAULT_DIALECT

    @property
    def release(self) -> Release:
        """When the client gets the answer."""
        return self.settings.release or Release.CHECKED

    @property
    def retries(self) -> int:
        """How many times the model may be asked again."""
        return self.settings.retries or 0

    @property
    def line(self) -> str:
        """The plan in one line, for logs and headers."""
        how = f" {self.settings.strategy} {self.dialect}" if self.way in (Way.FORCE, Way.FALLBACK) else ""
        return f"{self.way}{how} {self.release}: {self.why}"


def decide(request: Request, settings: Settings = NOTHING_SAID, facts: ModelFacts = UNKNOWN_MODEL) -> Plan:
    """Return the plan of a request. Settings win over facts, and facts over defaults."""
    way, why = _way(request, settings, facts)
    guardrails = guardrails_for(request, [name for name in GUARDRAILS if getattr(settings, name)])
    must_call = request.choice.mode in (ChoiceMode.REQUIRED, ChoiceMode.NAMED)
    return Plan(
        way,
        why,
        _completed(settings, facts, buffers=must_call or any(one.buffers for one in guardrails)),
        facts,
        projects=settings.mode is Mode.FORCE or facts.tools is Support.NONE or bool(settings.chat),
        rescue_dialect=settings.dialect or facts.leaks_as or ANY_DIALECT,
        guardrails=guardrails,
    )


# Merging takes longer than the rest of `decide`, and a process sees few combinations: one per model and kind of client.
# To hash a combination takes longer than the rest, too. A model's settings and facts are the same objects in most
# requests, so they are looked for by identity first. The entry keeps them, so no other object can get their identity.
_MOST: Final = 1024
_RECENT: Final[dict[tuple[int, int, bool], tuple[Settings, Settings, ModelFacts]]] = {}


def _completed(settings: Settings, facts: ModelFacts, *, buffers: bool) -> Settings:
    """Return the settings that a turn runs with, from a cache if it has them."""
    key = (id(settings), id(facts), buffers)
    known = _RECENT.get(key)
    if known is None:
        if len(_RECENT) >= _MOST:
            _RECENT.clear()
        known = _RECENT[key] = (_complete(settings, facts, buffers=buffers), settings, facts)
    return known[0]


@lru_cache(maxsize=_MOST)
def _complete(settings: Settings, facts: ModelFacts, *, buffers: bool) -> Settings:
    """Return the settings that a turn runs with; `buffers` if its answer must not leave before its end."""
    complete = settings.over(_advice(settings, facts)).over(DEFAULTS)
    return _demanded(complete, facts, buffers=buffers).over(complete)


def _advice(settings: Settings, facts: ModelFacts) -> Settings:
    """Return the settings that suit the model, for those that users leave open."""
    return Settings(
        strategy=Strategy.DECISION if facts.decides else None,
        dialect=facts.dialect or None,
        # Decisions of the modes `force` and `fallback` follow DEC-1 to the letter and drop the client's system prompt.
        # `auto` keeps it, because dropping it loses instructions (DEC-6).
        keep_system=settings.mode in (None, Mode.AUTO),
        few_shot=facts.few_shot,
        answer_tool=facts.answer_tool,
        constraint=facts.constraint,
    )


def _demanded(complete: Settings, facts: ModelFacts, *, buffers: bool) -> Settings:
    """Return the settings that follow from others, from the request or from the upstream, whatever users set."""
    constraint = Constrain.OFF if facts.quirks.constraint is ConstraintForm.NONE else complete.constraint
    decides = complete.strategy is Strategy.DECISION
    in_json = constraint is Constrain.JSON and not decides
    return Settings(
        constraint=constraint,
        dialect=DECISION_DIALECT if decides else JSON_DIALECT if in_json else None,
        # An answer that is JSON as a whole has no place for text but a call of the answer tool.
        answer_tool=True if in_json else None,
        # Text that has left could not be taken back for the call that must come.
        release=Release.BUFFERED if buffers else None,
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


def has_calls(request: Request) -> bool:
    """Return whether the history of a request has calls."""
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Call):
                return True
    return False

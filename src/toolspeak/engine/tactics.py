"""The state machine of a turn: the tactics, and which one follows in which situation.

A tactic is one way to get an answer. `TACTICS` is the whole table. The loop in `turn.py` makes an attempt, judges the
answer (`Situation`), and looks up the next tactic here. The diagram in `docs/turns.md` is drawn from this table.

The table replaces one loop that was written three times, for native, inline and decision. It has no code, so a reader
can check by eye that every situation of every tactic leads somewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import Release, Strategy
from toolspeak.engine.trouble import Kind
from toolspeak.ir.failure import FailureKind


# The docs below the names are also the table in `docs/turns.md`.
class Name(StrEnum):
    """The tactics."""

    PASS = "pass"
    """Send the request as it is, and pass the answer through (MODE-2)."""
    WORDS = "words"
    """Ask for text only, without tools."""
    NATIVE = "native"
    """Send the tools; check the calls, and find those that leaked into the text (MODE-8)."""
    NATIVE_FIRST = "native first"
    """As NATIVE, but an answer without calls is only kept in case emulation brings none either (MODE-3)."""
    WITH_TOOLS = "with tools"
    """Native, with the tools that the history needs beside it. Some servers want them though none may be called."""
    WITHOUT_CHOICE = "without choice"
    """Native, with the tool choice left to the model: the server knows no other."""
    WITHOUT_STREAM = "without stream"
    """Native, not streamed: the server cannot stream calls."""
    SALVAGE = "salvage"
    """Read the model's own text out of the error of a server whose call parser failed. No request is sent."""
    INLINE = "inline"
    """Teach the tools in the prompt; text and calls may come (INL-1)."""
    DECISION = "decision"
    """Teach the tools, and ask only which of them to call (DEC-1)."""


class End(StrEnum):
    """How a turn ends."""

    FINISH = "finish"
    """With the answer, or with an error if nothing in the answer can be used (P6)."""
    FAIL = "fail"
    """With the upstream's error."""
    FIRST = "first answer"
    """With the native answer in words that came first, because emulation brought no call (MODE-7)."""


class Situation(StrEnum):
    """The result of an attempt, as far as the choice of the next tactic depends on it."""

    USABLE = "usable"
    TROUBLE = "trouble"
    """The answer cannot be used as it is, and asking again may help (CHK-5)."""
    NO_RETRY = "no retry left"
    """As TROUBLE, but the retries are used up, or text has left that a new answer would contradict."""
    NO_CALLS = "no calls"
    """The answer has no calls. Only tactics that name this situation in `after` distinguish it from USABLE."""
    SET_ASIDE = "calls set aside"
    """A guardrail dropped all calls, and the model must answer in words (CHK-10)."""
    NOT_BETTER = "no better than the first"
    """There is an earlier answer in words, and this attempt brought no call."""
    TOOLS_DENIED = "tools denied"
    """The model says that it has no tools, and it is unknown whether the upstream has shown it those that were sent.

    Servers drop `tools` in silence: llama.cpp without `--jinja`, templates without a place for them, proxies.
    """
    CONSTRAINT_REFUSED = "constraint refused"
    SYSTEM_REFUSED = "system message refused"
    """The chat template of a model that no fact describes has no system role, or wants other roles (INL-10)."""
    TOOLS_REFUSED = "tools refused"
    HISTORY_REFUSED = "history refused"
    """The server rejects the calls and results of the history. Emulation writes them as text, which it accepts.

    Each vendor has its own demands: Mistral wants ids of nine characters, Gemini 3 its `thought_signature` back,
    Anthropic a result directly after each call. A history from another vendor meets none of them.
    """
    TOOLS_MISSING = "tools missing"
    """The server wants the tools of the history in the request, though none may be called (Bedrock's `toolConfig`)."""
    CHOICE_REFUSED = "tool choice refused"
    STREAM_REFUSED = "streaming refused"
    """The server has tools only without streaming, as Bedrock has for Llama 4."""
    PARSER_FAILED = "call parser failed"
    """The server could not parse its model's call, and may quote the model's text in the error."""
    FAILED = "failed"
    """Any other error. It goes to the client unchanged."""


class Teach(StrEnum):
    """A placeholder in the table for INLINE or DECISION; the plan says which of them."""

    EMULATED = "emulated"


Next: TypeAlias = Name | End | Teach

REFUSALS: Final[Mapping[FailureKind, Situation]] = {
    FailureKind.TOOLS_UNSUPPORTED: Situation.TOOLS_REFUSED,
    # OpenAI accepts 128 tools. A prompt has no such limit, so all of them can be taught.
    FailureKind.TOO_MANY_TOOLS: Situation.TOOLS_REFUSED,
    FailureKind.ROLE_ORDER: Situation.HISTORY_REFUSED,
    FailureKind.CONTENT_SHAPE: Situation.HISTORY_REFUSED,
    FailureKind.HISTORY_PAIRING: Situation.HISTORY_REFUSED,
    FailureKind.HISTORY_NEEDS_SIGNATURE: Situation.HISTORY_REFUSED,
    FailureKind.TOOL_CALL_ID_FORMAT: Situation.HISTORY_REFUSED,
    FailureKind.HISTORY_NEEDS_TOOLS: Situation.TOOLS_MISSING,
    FailureKind.TOOL_CHOICE_UNSUPPORTED: Situation.CHOICE_REFUSED,
    FailureKind.STREAMING_TOOLS_UNSUPPORTED: Situation.STREAM_REFUSED,
    FailureKind.NATIVE_PARSER_FAILED: Situation.PARSER_FAILED,
    FailureKind.MODEL_SCHEMA_ERROR: Situation.PARSER_FAILED,
}
"""The errors that are about the form of the request, so that another form may succeed (WIRE-5). All others are FAILED.

A rate limit, a rejected key or an overlong context is not here on purpose: another tactic would only repeat it.
"""


@dataclass(frozen=True, slots=True)
class Tactic:
    """One way to get an answer.

    A situation that `after` does not name ends the turn: a failure with FAIL, any other with FINISH.
    """

    name: Name
    after: Mapping[Situation, Next] = field(default_factory=dict[Situation, Next])
    """The next tactic for each situation. The tactic's own name means a retry."""
    retries: frozenset[Kind] = frozenset()
    """The troubles after which the model is asked again."""
    release: Release | None = None
    """When events leave; None means as the plan says."""
    watches: bool = False
    """Whether a refusal to use tools ("I have no tools") is a trouble."""

    @property
    def is_pass_through(self) -> bool:
        """Whether the answer is forwarded without a search for calls."""
        return self.name in (Name.PASS, Name.WORDS)

    @property
    def is_taught(self) -> bool:
        """Whether the tools are taught in the prompt."""
        return self.name in (Name.INLINE, Name.DECISION)

    def next(self, situation: Situation) -> Next:
        """Return the tactic that follows in a situation, or how the turn ends."""
        return self.after.get(situation) or (End.FAIL if situation in _FAILURES else End.FINISH)


_FAILURES: Final = frozenset((Situation.FAILED, *REFUSALS.values()))
_ANY: Final = frozenset(Kind)
_AFTER_NATIVE: Final[Mapping[Situation, Next]] = {
    Situation.TROUBLE: Name.NATIVE,
    Situation.SET_ASIDE: Name.WORDS,
    Situation.TOOLS_DENIED: Teach.EMULATED,
    Situation.TOOLS_REFUSED: Teach.EMULATED,
    Situation.HISTORY_REFUSED: Teach.EMULATED,
    Situation.TOOLS_MISSING: Name.WITH_TOOLS,
    Situation.CHOICE_REFUSED: Name.WITHOUT_CHOICE,
    Situation.STREAM_REFUSED: Name.WITHOUT_STREAM,
    Situation.PARSER_FAILED: Name.SALVAGE,
    Situation.NOT_BETTER: End.FIRST,
}
_AFTER_FIRST: Final[Mapping[Situation, Next]] = {
    **_AFTER_NATIVE,
    Situation.TROUBLE: Name.NATIVE_FIRST,
    Situation.NO_CALLS: Teach.EMULATED,
}
_AFTER_INLINE: Final[Mapping[Situation, Next]] = {
    Situation.TROUBLE: Name.INLINE,
    Situation.SET_ASIDE: Name.WORDS,
    Situation.CONSTRAINT_REFUSED: Name.INLINE,
    Situation.SYSTEM_REFUSED: Name.INLINE,
    Situation.NOT_BETTER: End.FIRST,
}
_AFTER_DECISION: Final[Mapping[Situation, Next]] = {
    Situation.TROUBLE: Name.DECISION,
    Situation.SET_ASIDE: Name.WORDS,
    Situation.NO_CALLS: Name.WORDS,
    Situation.CONSTRAINT_REFUSED: Name.DECISION,
    Situation.SYSTEM_REFUSED: Name.DECISION,
    Situation.NOT_BETTER: End.FIRST,
}
TACTICS: Final[Mapping[Name, Tactic]] = {
    tactic.name: tactic
    for tactic in (
        Tactic(Name.PASS),
        Tactic(Name.WORDS),
        Tactic(Name.NATIVE, _AFTER_NATIVE, _ANY, watches=True),
        Tactic(Name.NATIVE_FIRST, _AFTER_FIRST, _ANY, Release.BUFFERED, watches=True),
        # These three are tried once and lead nowhere else: if a server rejects two forms of one request, its second
        # error goes to the client. Each further form would cost another round trip.
        Tactic(Name.WITH_TOOLS),
        Tactic(Name.WITHOUT_CHOICE),
        Tactic(Name.WITHOUT_STREAM),
        Tactic(Name.SALVAGE, {Situation.NO_CALLS: Teach.EMULATED}, release=Release.BUFFERED),
        Tactic(Name.INLINE, _AFTER_INLINE, _ANY, watches=True),
        # An empty decision means that no tool is needed (DEC-3), so EMPTY is not a trouble here. It is buffered because
        # a decision is JSON that the client must never see.
        Tactic(Name.DECISION, _AFTER_DECISION, _ANY - {Kind.EMPTY, Kind.UNRELATED}, Release.BUFFERED),
    )
}


def first_tactic(plan: Plan, *, has_tools: bool) -> Tactic:
    """Return the tactic that a turn begins with; without tools there is nothing to emulate."""
    match plan.way:
        case Way.PLAIN:
            return TACTICS[Name.WORDS]
        case Way.OFF:
            return TACTICS[Name.PASS]
        case Way.NATIVE:
            return TACTICS[Name.NATIVE]
        case Way.FALLBACK:
            return TACTICS[Name.NATIVE_FIRST]
        case Way.FORCE:
            return tactic_of(Teach.EMULATED, plan) if has_tools else TACTICS[Name.WORDS]


def tactic_of(following: Name | Teach, plan: Plan) -> Tactic:
    """Return the tactic of a name; for `Teach.EMULATED`, the one of the plan's strategy."""
    if isinstance(following, Name):
        return TACTICS[following]
    return TACTICS[Name.DECISION if plan.settings.strategy is Strategy.DECISION else Name.INLINE]

"""Measures what a model of an upstream really does with tools (CAP-3): a generator without I/O, cheap layers first.

    1 metadata    what the server says about itself                          `look.py`
    2 tokens      the prompt's tokens with and without tools; equal counts mean that the server drops tools silently
    3 forced      a call that the tool choice demands, and
      call        one that is asked for in words: native, or leaked as text
    4 many tools  the same with eleven tools: some servers leak only then
    5 parallel    two calls in one answer
    6 streamed    a call in a stream
    7 continued   a history with a call and its result

One request proves nothing. A 200 with plain text may mean that the model chose not to call, and a model that calls with
one tool may write text with eleven (goose #6883). So several layers are asked, and the verdict keeps its evidence.

A layer is skipped if an earlier one has settled its question. An error that is not about tools (overload, rejected key,
rate limit) ends the probe, and every question that is not settled by then stays unknown. Other systems cache such an
error as "no tools".
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from toolspeak.dialects import load
from toolspeak.engine.effects import AskOnce, ProbeAnswer, ProbeEffect, ProbeProgram
from toolspeak.engine.look import look_at
from toolspeak.engine.plan import ANY_DIALECT
from toolspeak.engine.tactics import REFUSALS, Situation
from toolspeak.engine.verdict import SURE, Depth, Finding, Layer, Verdict
from toolspeak.facts.model import Support
from toolspeak.ir.event import Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn, fold

REQUIRED: Final = ToolChoice(ChoiceMode.REQUIRED)
_ONE, _FEWEST, _SHORT, _LONG = 1, 16, 64, 256
"""Token limits: for a count; for a count on servers that reject 1; for a demanded call; for a call after reasoning.

The limit of a demanded call is low because llama.cpp pads it with newlines up to the limit for some models.
"""
Asking: TypeAlias = Generator[ProbeEffect, ProbeAnswer, "_Answer"]
Layered: TypeAlias = Generator[ProbeEffect, ProbeAnswer, None]


def probe(model: str, depth: Depth = Depth.FULL) -> ProbeProgram:
    """Probe a model from the first layer on, and return the verdict."""
    looked = yield from look_at(model)
    return (yield from probe_on(model, depth, looked))


def probe_on(model: str, depth: Depth, looked: Verdict) -> ProbeProgram:
    """Continue after the first layer, whose verdict is `looked`, down to `depth`."""
    if looked.stopped or not depth.reaches(Depth.TOKENS) or (looked.tools is Support.NONE and looked.confidence > SURE):
        return replace(looked, depth=depth)
    probing = _Probing(model, looked)
    try:
        yield from probing.tokens()
        if depth is Depth.FULL and not probing.has_none:
            yield from probing.calls()
    except _Stopped as stop:
        return probing.broken_off(stop.failure, depth)
    return probing.verdict(depth)


class _Stopped(Exception):
    """A request failed for a reason that is not about tools. Raised and caught in this module only."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one request of the probe."""

    native: int = 0
    """Calls that the server returned as calls."""
    leaked: int = 0
    """Calls that it returned as text, or quoted in an error."""
    text: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None

    @property
    def calls(self) -> int:
        return self.native + self.leaked

    @property
    def refuses(self) -> bool:
        """Whether the server refused tools."""
        return self.failure is not None and REFUSALS.get(self.failure.kind) is Situation.TOOLS_REFUSED

    @property
    def said(self) -> str:
        """The quoted error message; empty without an error."""
        return f"«{self.failure.message[:160]}»" if self.failure else ""


class _Probing:
    """The state of one probe."""

    def __init__(self, model: str, looked: Verdict) -> None:
        self._model, self._looked = model, looked
        self._tools, self._confidence = looked.tools, looked.confidence
        self._evidence = list(looked.evidence)
        self._parallel: bool | None = None
        self._streamed: bool | None = None
        self._continues: bool | None = None
        self._plain = False
        """Whether this server rejects a temperature or a limit of one token; later requests then have neither."""

    @property
    def has_none(self) -> bool:
        """Whether it is settled that there are no tools."""
        return self._tools is Support.NONE and self._confidence >= SURE

    def verdict(self, depth: Depth) -> Verdict:
        """Return the verdict from all evidence so far."""
        return replace(
            self._looked,
            tools=self._tools,
            confidence=self._confidence,
            evidence=tuple(self._evidence),
            parallel=self._parallel,
            streamed=self._streamed,
            continues=self._continues,
            depth=depth,
        )

    def broken_off(self, failure: Failure, depth: Depth) -> Verdict:
        """Return the verdict after a failure: settled questions keep their answer, all others are unknown."""
        reason = f"the probe was broken off ({failure.kind}): {failure.message[:160]}"
        self._evidence.append(Finding(Layer.METADATA, Support.UNKNOWN, reason))
        if self._confidence < SURE:
            self._tools, self._confidence = Support.UNKNOWN, 0.0
        return replace(self.verdict(depth), stopped=True)

    # ---------------------------------------------------------------- 2: tokens

    def tokens(self) -> Layered:
        """Compare the prompt's tokens with and without tools."""
        without = yield from self._counted(())
        if without.failure is not None:
            self._note(Layer.TOKENS, f"a plain question is refused: {without.said}")
            return
        offered = yield from self._counted(FEW)
        if offered.refuses:
            self._settle(Layer.TOKENS, Support.NONE, 0.95, f"tools are refused: {offered.said}")
        elif offered.failure is not None:
            self._note(Layer.TOKENS, f"with tools it fails: {offered.said}")
        else:
            self._compare(without.usage.input_tokens, offered.usage.input_tokens)

    def _compare(self, without: int, offered: int) -> None:
        if not without or not offered:
            self._note(Layer.TOKENS, "the server does not count the prompt's tokens")
        elif offered == without:
            reason = f"the prompt has {without} tokens with tools and without: they are dropped in silence"
            self._settle(Layer.TOKENS, Support.NONE, 0.95, reason)
        elif offered > without:
            self._note(Layer.TOKENS, f"tools make the prompt {offered - without} tokens longer: they reach the model")
            # The metadata said that there are no tools, but they make the prompt longer. The measurement wins over the
            # server's own words, and the next layers decide.
            if self._tools is Support.NONE:
                self._tools, self._confidence = Support.UNKNOWN, 0.0
        else:
            self._note(Layer.TOKENS, f"the counts do not fit: {offered} tokens with tools, {without} without")

    def _counted(self, tools: tuple[Tool, ...]) -> Asking:
        answer = yield from self._asked(ROLL, tools, most=_ONE)
        if answer.failure is not None and answer.failure.kind is FailureKind.INVALID_REQUEST and not self._plain:
            self._plain = True
            answer = yield from self._asked(ROLL, tools, most=_ONE)
        return answer

    # ---------------------------------------------------------------- 3 to 7: calls

    def calls(self) -> Layered:
        """Ask for a demanded call and for one in words; if a call comes, ask for the rarer forms too."""
        forced = yield from self._asked(ROLL, FEW, choice=REQUIRED, most=_SHORT)
        self._note(Layer.FORCED, _came(forced) or f"no call, though it was demanded {forced.said}".strip())
        asked = yield from self._asked(ROLL, FEW, most=_LONG)
        if asked.refuses:
            self._settle(Layer.CALL, Support.NONE, 0.95, f"tools are refused: {asked.said}")
            return
        self._judge(asked, forced)
        if not (asked.calls or forced.native):
            return
        if asked.native:
            yield from self._many()
        yield from self._twice()
        yield from self._in_stream()
        yield from self._after_result()

    def _judge(self, asked: _Answer, forced: _Answer) -> None:
        """Judge the call that was asked for in words; the demanded call counts only if that one did not come.

        A demanded call proves less: some servers enforce it by a grammar, even if the model never calls by itself.
        """
        if asked.native:
            self._settle(Layer.CALL, Support.NATIVE, 0.9, _came(asked))
        elif asked.leaked:
            self._settle(Layer.CALL, Support.LEAKS, 0.9, _came(asked))
        elif forced.native:
            self._settle(Layer.CALL, Support.NATIVE, 0.6, "it calls only if it must")
        else:
            self._tools, self._confidence = Support.UNKNOWN, 0.0
            self._note(Layer.CALL, f"no call came, native or as text {asked.said}".strip())

    def _many(self) -> Layered:
        many = yield from self._asked(ROLL, MANY, most=_LONG)
        few, much = len(FEW), len(MANY)
        if many.leaked:
            reason = f"native with {few} tool{'s'[: few > 1]}, but with {much} tools the call comes as text"
            self._settle(Layer.MANY, Support.LEAKS, 0.9, reason)
        elif many.native:
            self._settle(Layer.MANY, Support.NATIVE, 0.95, f"with {much} tools too, {_came(many)}")
        else:
            self._note(Layer.MANY, f"with {much} tools no call came {many.said}".strip())

    def _twice(self) -> Layered:
        twice = yield from self._asked(ROLL_TWICE, FEW, most=_LONG)
        self._parallel = twice.calls > 1 if twice.calls else None
        self._note(Layer.PARALLEL, f"of two calls, {twice.calls or 'none'} came {twice.said}".strip())

    def _in_stream(self) -> Layered:
        streamed = yield from self._asked(ROLL, FEW, most=_LONG, stream=True)
        if streamed.failure is not None and streamed.failure.kind is FailureKind.STREAMING_TOOLS_UNSUPPORTED:
            self._streamed = False
            self._note(Layer.STREAMED, f"tools are refused in a stream: {streamed.said}")
            return
        self._streamed = True if streamed.calls else None
        if streamed.leaked and self._tools is Support.NATIVE:
            self._settle(
                Layer.STREAMED, Support.LEAKS, 0.9, "native when whole, but in a stream the call comes as text"
            )
        else:
            self._note(Layer.STREAMED, f"in a stream {_came(streamed) or 'no call came'} {streamed.said}".strip())

    def _after_result(self) -> Layered:
        after = yield from self._asked(CONTINUED, FEW, most=_SHORT)
        self._continues = after.failure is None and bool(after.text.strip() or after.calls)
        said = "is answered" if self._continues else f"is not answered {after.said}".strip()
        self._note(Layer.CONTINUED, f"a history with a call and its result {said}")

    # ---------------------------------------------------------------- one request

    def _asked(
        self,
        messages: tuple[Message, ...],
        tools: tuple[Tool, ...],
        *,
        most: int,
        choice: ToolChoice = AUTO,
        stream: bool = False,
    ) -> Asking:
        """Send one request. Raises `_Stopped` if it fails for a reason that is not about tools."""
        sampling = Sampling(max(most, _FEWEST)) if self._plain else Sampling(most, temperature=0.0)
        answer = _read((yield AskOnce(Request(self._model, messages, tools, choice, sampling, stream))), tools)
        if answer.failure is not None and _is_not_about_tools(answer.failure.kind):
            raise _Stopped(answer.failure)
        return answer

    def _settle(self, layer: Layer, says: Support, confidence: float, reason: str) -> None:
        self._evidence.append(Finding(layer, says, reason))
        self._tools, self._confidence = says, confidence

    def _note(self, layer: Layer, reason: str) -> None:
        """Record evidence that decides nothing by itself."""
        self._evidence.append(Finding(layer, Support.UNKNOWN, reason))


def _read(answer: ProbeAnswer, tools: Sequence[Tool]) -> _Answer:
    """Count the calls in an answer: native ones, those in its text, and those in the error of a failed call parser."""
    turn = fold(answer) if isinstance(answer, list) else Turn()
    names = {tool.name for tool in tools}
    native = sum(call.name in names for call in turn.calls)
    text = turn.text
    if turn.failure is not None:
        text = turn.failure.salvage if REFUSALS.get(turn.failure.kind) is Situation.PARSER_FAILED else ""
    leaked = len(load(ANY_DIALECT).read(text, tools).calls) if text and tools and not native else 0
    return _Answer(native, leaked, text, turn.usage, turn.failure)


def _came(answer: _Answer) -> str:
    """Return in words how a call came; empty if none did."""
    if answer.native:
        return "the call comes as a call"
    if answer.leaked and answer.failure is not None:
        return "the server cannot read its model's call, and quotes it in an error"
    return "the call comes as text" if answer.leaked else ""


def _is_not_about_tools(kind: FailureKind) -> bool:
    return kind.is_temporary or kind.denies_access or kind in (FailureKind.NOT_FOUND, FailureKind.OTHER)


def _tool(name: str, description: str, argument: str, kind: str = "string") -> Tool:
    parameters: JsonObject = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
    return Tool(name, description, parameters)


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


DICE: Final = _tool("roll_dice", "Roll one die.", "sides", "integer")
FEW: Final = (DICE,)
MANY: Final = (
    _tool("add_note", "Keep a note.", "text"),
    _tool("find_bus", "Tell when the next bus leaves.", "stop"),
    _tool("read_thermometer", "Measure the temperature of a room.", "room"),
    _tool("set_alarm", "Wake somebody.", "time"),
    _tool("send_letter", "Send a letter.", "address"),
    DICE,
    _tool("look_up_word", "Explain a word.", "word"),
    _tool("play_song", "Play a song.", "title"),
    _tool("change_money", "Change an amount of money.", "amount", "number"),
    _tool("list_folder", "List the files of a folder.", "folder"),
    _tool("draw_card", "Draw cards.", "count", "integer"),
)
"""Eleven tools. One model wrote JSON with up to five tools, and XML as text with eleven (goose #6883)."""

ROLL: Final = (_user("Use the tool roll_dice to roll a die with 20 sides."),)
ROLL_TWICE: Final = (
    _user("Call the tool roll_dice two times in this answer: once with 6 sides, and once with 20 sides."),
)
_CALL: Final = Call("call_probe0001", DICE.name, '{"sides":20}')
CONTINUED: Final = (
    *ROLL,
    Message(Role.ASSISTANT, (_CALL,)),
    Message(Role.TOOL, (Result(_CALL.id, (Text("17"),), _CALL.name),)),
)
"""A history with a call and its result, which the model only has to repeat in words."""

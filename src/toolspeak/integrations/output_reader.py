"""Reads the output of one model inside of a model server: content and calls, in the order of the text.

    reader = OutputReader(load("hermes"), tools)
    reader.feed('Sure. <tool_call>{"name": "now", ')    [Content("Sure. ")]
    reader.feed('"arguments": {}}</tool_call>')          [CallDelta(0, "call_0", "now", ""), CallDelta(0, json="{}")]
    reader.finish()                                      []

The gates are those of the gateway's answers (`engine/answer_reader.py`): only a call that passes them leaves. A server
has no way to ask the model again, and none to show reasoning or complaints here. So this reader differs in three ways:

- A rejected call stays in the content, as the model wrote it: nothing that the model wrote is lost without a trace.
- Reasoning stays in the content with its markers. Both vLLM and SGLang take it out before, if a reasoning parser is
  set; without one, they show it as it is. Calls in reasoning are not read (P5).
- A call that grows in view of the client keeps its last closing brace back until it is complete. If it turns out to be
  wrong, or if the output ends in it, the client has JSON that it cannot parse, and so cannot run (P3).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from typing_extensions import override

from toolspeak.dialects import Dialect, ReadOptions, TextReader
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.dialects.core.output import counted_ids
from toolspeak.engine.answer_reader import AnswerReader, ReaderParts, StopText
from toolspeak.engine.guard import Echo
from toolspeak.engine.readers import MOST_CALLS
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Why,
)
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Item
from toolspeak.text.scan import folded
from toolspeak.toolset.check import CallChecker, CallIds
from toolspeak.toolset.toolset import ToolSet


@dataclass(frozen=True, slots=True)
class Content:
    """More text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of the call with this index. The first delta of a call has its id and name, and no JSON."""

    index: int
    id: str = ""
    name: str = ""
    json: str = ""


OutputDelta: TypeAlias = Content | CallDelta


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A complete call of a whole output."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class OutputContext:
    """What a server knows about an output beside the tools."""

    choice: ToolChoice = AUTO
    untrusted: Iterable[str] = ()
    """The texts of the conversation that neither the model nor the operator wrote: a call that only repeats one of them
    stays text (SAFE-3)."""
    ids: Iterator[str] | None = None
    """The ids of new calls; None counts them."""
    streams_calls: bool = True
    """Whether a long call leaves while it grows."""


IN_STREAM: Final = OutputContext()
WHOLE: Final = OutputContext(streams_calls=False)


class OutputReader:
    """Reads one output. Made new for each output, never reset."""

    def __init__(self, dialect: Dialect, tools: Sequence[Tool], context: OutputContext = IN_STREAM) -> None:
        """Read calls of `tools`."""
        choice = context.choice
        compiled, ids = ToolSet.of(tools), CallIds(counted_ids() if context.ids is None else context.ids)
        is_single = not choice.parallel or choice.mode is ChoiceMode.NAMED
        parts = ReaderParts(
            _VerbatimReader(dialect.grammar, compiled, ids, ReadOptions(choice, tells_growth=context.streams_calls)),
            compiled,
            CallChecker(compiled, choice, ids),
            StopText(()),
            Echo(context.untrusted),
            1 if is_single else MOST_CALLS,
        )
        self._reader = AnswerReader(parts)
        self._indices: dict[str, int] = {}
        self._held: dict[str, str] = {}  # by call: a closing brace that may be the last one

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """Why attempted calls are not among the calls; complete after `finish`."""
        return tuple(rejected.complaint for rejected in self._reader.answer().rejected)

    def feed(self, text: str) -> list[OutputDelta]:
        """Take more text; return what it decides."""
        return list(self._deltas(self._reader.feed((TextDelta(text),)))) if text else []

    def finish(self) -> list[OutputDelta]:
        """Take the end of the output; return the rest."""
        return list(self._deltas(self._reader.feed((Finished(StopReason.END),))))

    def _deltas(self, events: Iterable[Event]) -> Iterator[OutputDelta]:
        for event in events:
            match event:
                case TextDelta(text):
                    yield Content(text)
                case CallStarted(id, name, native_id):
                    self._indices[id], self._held[id] = len(self._indices), ""
                    yield CallDelta(self._indices[id], _lasting_id(id, native_id), name)
                case ArgsDelta(id, json):
                    if sendable := self._sendable(id, json):
                        yield CallDelta(self._indices[id], json=sendable)
                case CallEnded(id):
                    if held := self._held.pop(id):
                        yield CallDelta(self._indices[id], json=held)
                case _:
                    pass

    def _sendable(self, id: str, json: str) -> str:
        """Return the JSON that may leave now: all but a closing brace at the end, with the blanks after it."""
        json = self._held[id] + json
        end = len(json.rstrip())
        end -= json[:end].endswith("}")
        self._held[id] = json[end:]
        return json[:end]


def read_output(reader: OutputReader, text: str) -> tuple[str, tuple[ReadCall, ...]]:
    """Read a whole output: the content and the calls that streaming it would give."""
    content: list[str] = []
    calls: dict[int, tuple[CallDelta, list[str]]] = {}
    for delta in (*reader.feed(text), *reader.finish()):
        if isinstance(delta, Content):
            content.append(delta.text)
        else:
            calls.setdefault(delta.index, (delta, []))[1].append(delta.json)
    read = tuple(ReadCall(started.id, started.name, "".join(pieces)) for started, pieces in calls.values())
    return "".join(content), read


def _lasting_id(id: str, native_id: str) -> str:
    """Return the id that the client sees.

    Kimi's template writes the ids of the history as they are, and the model expects its own form there. Other models
    that write an id write the same one in every turn.
    """
    return native_id if native_id.startswith("functions.") else id


class _VerbatimReader(TextReader):
    """Shows reasoning and rejected calls as text, with their markup."""

    def __init__(self, grammar: MarkupGrammar, tools: ToolSet, ids: Iterator[str], options: ReadOptions) -> None:
        super().__init__(grammar, tools, ids, options)
        self._openers = {folded(marks.opener) for marks in grammar.reasoning}
        self._closers = {folded(closer) for marks in grammar.reasoning for closer in marks.closers}
        self._is_opened = False  # reasoning, by a marker that was shown
        self._after_rejected = False

    @override
    def read(self, chunk: str) -> list[Item]:
        return list(self._shown(super().read(chunk)))

    @override
    def read_end(self) -> list[Item]:
        return list(self._shown(super().read_end()))

    def _shown(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if isinstance(item, ReasoningDelta):
                yield TextDelta(item.text)
            elif isinstance(item, CallRejected):
                yield from (item, TextDelta(item.raw))
            elif isinstance(item, Discarded) and self._is_shown(item):
                yield TextDelta(item.raw)
            else:
                yield item
            # The closer of a rejected call comes on its own, and belongs to the text that it closes.
            self._after_rejected = isinstance(item, CallRejected)

    def _is_shown(self, item: Discarded) -> bool:
        raw = folded(item.raw)
        if item.why is Why.DEBRIS and raw in (self._closers if self._is_opened else self._openers):
            self._is_opened = not self._is_opened
            return True
        return item.why is Why.DEBRIS and self._after_rejected

"""How a text is read: labelled spans, calls and complaints. The data that `toolspeak explain` prints.

For a text that comes without tool definitions, the tools are guessed. A reader accepts a call only if its name is that
of a tool, so `AnyTools` accepts every name that a tool could have: each name that a reader looks up becomes a tool with
free arguments. The output says that it is a guess.
"""

# `ToolSet` is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, assert_never

from toolspeak.cli.terminal import counted
from toolspeak.dialects import Dialect, load, names
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import CallRejected, Discarded, Event, Why
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, TurnPart, fold
from toolspeak.toolset.names import UNKNOWN, Match
from toolspeak.toolset.toolset import MOST_TOOLS, ToolSet, compile_tools

_LONGEST_TRIED: Final = 64 * 1024
"""Characters; a longer text is not tried with other dialects, because each one reads all of it."""
_NAME = re.compile(r"(?a:[A-Za-z_][\w.:/-]{0,127})")
_NAMESPACE = re.compile(r"(?:functions?|tools?|default_api)[./:]")
_ELEMENT = re.compile(r"(?a:<(?!tool_calls?>|think)([A-Za-z_]\w{0,127})>)")
_NOT_A_TOOL: Final = "print"
"""Some models wrap their calls in `print(…)`."""
_MOST_ELEMENTS: Final = 64
_UNUSED: Final = Tool("a.tool.that.no.text.calls")


class Kind(StrEnum):
    """What a character of model output can be. Each character is exactly one of these (P1)."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    INVALID = "invalid"
    DEBRIS = "debris"
    FORGED = "forged"
    LIMIT = "limit"


_DISCARDED: Final = {Why.DEBRIS: Kind.DEBRIS, Why.FORGED: Kind.FORGED, Why.LIMIT: Kind.LIMIT}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text. `number` counts calls, and complaints, from 1.

    If several calls share one stretch, the first has its text and the others are empty.
    """

    kind: Kind
    text: str
    start: int
    number: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of reading one text."""

    text: str
    dialect: str
    tools: tuple[str, ...]
    guessed: bool
    turn: Turn
    chunk: int | None = None
    same_in_chunks: bool = True
    better: tuple[str, ...] = ()
    """Dialects that find calls, if the chosen one finds neither calls nor complaints."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The valid calls."""
        return self.turn.calls

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """The reasons why attempts at calls were rejected."""
        return self.turn.complaints

    @property
    def lossless(self) -> bool:
        """Whether the spans joined are the text, byte for byte (P1)."""
        return "".join(span.text for span in self.spans) == self.text

    @property
    def sound(self) -> bool:
        """Whether the reader kept its promises: nothing lost, and the same result in chunks."""
        return self.lossless and self.same_in_chunks

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans in order; each character of the text is in one of them."""
        spans: list[Span] = []
        counts = dict.fromkeys(Kind, 0)
        start: int = 0
        for part in self.turn.parts:
            kind, text = _labelled(part)
            counts[kind] += 1
            spans.append(Span(kind, text, start, counts[kind] if kind in (Kind.CALL, Kind.INVALID) else 0))
            start += len(text)
        return tuple(spans)

    @property
    def summary(self) -> str:
        """The counts and checks on one line."""
        fixes = sum(len(call.fixes) for call in self.calls)
        counts = [counted(len(self.calls), "call"), counted(fixes, "fix"), counted(len(self.complaints), "complaint")]
        checks = ["no byte lost" if self.lossless else "BYTES LOST (a bug in toolspeak: please report it)"]
        if self.chunk is not None:
            size = counted(self.chunk, "character")
            how = "the same" if self.same_in_chunks else "DIFFERENT (a bug in toolspeak: please report it)"
            checks.append(f"{how} in chunks of {size}")
        return f"{', '.join(counts)}; {', '.join(checks)}"


def _labelled(part: TurnPart) -> tuple[Kind, str]:
    match part:
        case Text(text):
            return Kind.TEXT, text
        case Reasoning(text):
            return Kind.REASONING, text
        case Call():
            return Kind.CALL, part.raw
        case CallRejected():
            return Kind.INVALID, part.raw
        case Discarded(why, raw):
            return _DISCARDED[why], raw
        case _:
            assert_never(part)


def explained(text: str, tools: Sequence[Tool], dialect: str, chunk: int | None = None) -> Explanation:
    """Read a text with a dialect. Without tools, their names are guessed from the text."""
    reading = load(dialect)
    known = ToolSet.of(tools) if tools else guessed_tools(text, reading)
    turn = reading.read(text, known)
    offered = known.names if tools else tuple(dict.fromkeys(call.name for call in turn.calls))
    same = chunk is None or _in_chunks(text, reading, known, chunk) == turn
    better = () if turn.calls or turn.complaints else _better(text, tools)
    return Explanation(text, dialect, offered, not tools, turn, chunk, same, better)


def _in_chunks(text: str, dialect: Dialect, tools: ToolSet, size: int) -> Turn:
    reader = dialect.reader(tools)
    events: list[Event] = []
    for start in range(0, len(text), size):
        events += reader.feed(text[start : start + size])
    return fold((*events, *reader.finish()))


def _better(text: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    if len(text) > _LONGEST_TRIED:
        return ()
    return tuple(name for name in _worth_a_try() if _finds_calls(text, load(name), tools))


def _worth_a_try() -> Iterator[str]:
    """Yield `any`, and the dialects that read something which `any` does not."""
    every = load("any").grammar
    yield "any"
    for name in names():
        grammar = load(name).grammar
        if not ({*grammar.wrappers} <= {*every.wrappers} and {*grammar.specials} <= {*every.specials}):
            yield name


def _finds_calls(text: str, dialect: Dialect, tools: Sequence[Tool]) -> bool:
    return bool(dialect.read(text, tools or guessed_tools(text, dialect)).calls)


# ---------------------------------------------------------------- guessing the tools


class AnyTools(ToolSet):
    """A tool set in which every plausible name is a tool."""

    def __init__(self, elements: Iterable[str] = (), *, without: Iterable[str] = ()) -> None:
        """Exclude the names in `without`.

        Some dialects write both tools and parameters as `elements` of XML, so that each name can be either.
        """
        super().__init__()
        self._without = frozenset((*without, _NOT_A_TOOL))
        known: JsonObject = {name: {} for name in elements}
        self._parameters: JsonObject = {"type": "object", "properties": known, "additionalProperties": True}
        for name in known:
            self.find(name)

    def __bool__(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were looked up so far."""
        return tuple(self._entries)

    def find(self, name: str, *, counters: bool = False) -> Match:
        """Look a name up, and add it as a tool if it is plausible."""
        del counters
        name = name.partition("<|")[0].strip()
        while found := _NAMESPACE.match(name):
            name = name[found.end() :]
        if name in self._entries:
            return Match(name)
        if name in self._without or not _NAME.fullmatch(name) or len(self) >= MOST_TOOLS:
            return UNKNOWN
        made = compile_tools([Tool(name, parameters=self._parameters)])
        self._entries.update(made._entries)  # noqa: SLF001 - of our own class
        return Match(name)


def guessed_tools(text: str, dialect: Dialect) -> AnyTools:
    """Return tools with which the reader of this dialect finds the calls in a text."""
    elements = dict.fromkeys(found[1] for found in islice(_ELEMENT.finditer(text), _MOST_ELEMENTS))
    any_tools = AnyTools(elements)
    called = {call.name for call in dialect.read(text, any_tools).calls}
    if not any(_is_key(name, text) for name in called):
        return any_tools
    meant = {complaint.name for complaint in dialect.read(text, [_UNUSED]).complaints}
    if None in meant:  # this dialect writes the names of tools as keys
        return any_tools
    return AnyTools(elements, without=(name for name in called - meant if _is_key(name, text)))


def _is_key(name: str, text: str) -> bool:
    """Whether the text has `{"weather": {…}}`, which is an answer in JSON as likely as a call."""
    return re.search(rf'"{re.escape(name)}"\s{{0,9}}:', text) is not None

"""Reads a text as labelled spans, calls and complaints, and prints them for people and for programs.

      text | Checking.
    call 1 | <tool_call>
           | {"name": "find_bus", "arguments": {"stop": "Oslo S"}}
    debris | </tool_call>

For a text that comes without tool definitions, the tools are guessed. A reader accepts a call only if its name is that
of a tool, so `AnyTools` accepts every name that a tool could have: each name that a reader looks up becomes a tool with
free arguments. The output says that it is a guess.
"""

# `ToolSet` is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from toolspeak.cli.output import complaint_objects, fix_objects, indented, safe_json
from toolspeak.cli.terminal import Paint, count_noun, visible, wrap_columns
from toolspeak.dialects import Dialect, load, names
from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.event import Event
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.span import SPAN_MEANINGS, Span, SpanKind, spans_of
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.text.strict import parse
from toolspeak.toolset.names import UNKNOWN, Match
from toolspeak.toolset.toolset import MOST_TOOLS, ToolSet, compile_tools

_LONGEST_TRIED: Final = 64 * 1024
"""Characters; a longer text is not tried with other dialects, because each one reads all of it."""
_NAME = re.compile(r"(?a:[A-Za-z_][\w.:/-]{0,127})")
_NAMESPACE = re.compile(r"(?:functions?|tools?|default_api)[./:]")
_ELEMENT = re.compile(r"(?a:<(?!tool_calls?>|think)([A-Za-z_]\w{0,127})>)")
_CODE_BLOCK = re.compile(r"^```[^`\n]{0,40}\n[^`]*```", re.MULTILINE)
_MOST_BLOCKS: Final = 16
_NOT_A_TOOL: Final = "print"
"""Some models wrap their calls in `print(…)`."""
_MOST_ELEMENTS: Final = 64
_UNUSED: Final = Tool("a.tool.that.no.text.calls")


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
    quoted: tuple[str, ...] = ()
    """Tools whose calls are in code blocks that count as examples, because there is text beside them."""

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
        return spans_of(self.turn.parts)

    @property
    def summary(self) -> str:
        """The counts and checks on one line."""
        fixes = sum(len(call.fixes) for call in self.calls)
        counts = [
            count_noun(len(self.calls), "call"),
            count_noun(fixes, "fix"),
            count_noun(len(self.complaints), "complaint"),
        ]
        checks = ["no byte lost" if self.lossless else "BYTES LOST (a bug in toolspeak: please report it)"]
        if self.chunk is not None:
            size = count_noun(self.chunk, "character")
            how = "the same" if self.same_in_chunks else "DIFFERENT (a bug in toolspeak: please report it)"
            checks.append(f"{how} in chunks of {size}")
        return f"{', '.join(counts)}; {', '.join(checks)}"


def explain_text(text: str, tools: Sequence[Tool], dialect: str, chunk: int | None = None) -> Explanation:
    """Read a text with a dialect. Without tools, their names are guessed from the text."""
    reading = load(dialect)
    known = ToolSet.of(tools) if tools else guessed_tools(text, reading)
    turn = reading.read(text, known)
    offered = known.names if tools else tuple(dict.fromkeys(call.name for call in turn.calls))
    same = chunk is None or _in_chunks(text, reading, known, chunk) == turn
    silent = not turn.calls and not turn.complaints
    better = _better(text, tools) if silent else ()
    quoted = _quoted(text, tools) if silent and not better else ()
    return Explanation(text, dialect, offered, not tools, turn, chunk, same, better, quoted)


def _quoted(text: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return the tools that code blocks of the text would call if each of them were the whole answer."""
    reading = load("any")
    blocks = [found[0] for found in islice(_CODE_BLOCK.finditer(text[:_LONGEST_TRIED]), _MOST_BLOCKS)]
    turns = (reading.read(block, tools or guessed_tools(block, reading)) for block in blocks)
    return tuple(dict.fromkeys(call.name for turn in turns for call in turn.calls))


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
    if None in meant:  # this dialect writes the names of tools as keys, so a key is no sign of plain JSON
        return any_tools
    return AnyTools(elements, without=(name for name in called - meant if _is_key(name, text)))


def _is_key(name: str, text: str) -> bool:
    """Whether the text has `{"weather": {…}}`, which is an answer in JSON as likely as a call."""
    return re.search(rf'"{re.escape(name)}"\s{{0,9}}:', text) is not None


# ---------------------------------------------------------------- for people

_COLORS: Final = {
    SpanKind.TEXT: "",
    SpanKind.REASONING: "cyan",
    SpanKind.CALL: "green",
    SpanKind.INVALID: "red",
    SpanKind.DEBRIS: "bright_black",
    SpanKind.FORGED: "magenta",
    SpanKind.LIMIT: "yellow",
}
_PROBLEMS: Final = {
    Problem.PARSE_ERROR: "cannot be parsed",
    Problem.TRUNCATED: "is cut off",
    Problem.UNKNOWN_TOOL: "is not one of the tools",
    Problem.AMBIGUOUS: "matches more than one tool",
    Problem.SCHEMA_ERROR: "has arguments that do not match its schema",
    Problem.WRONG_TOOL: "is not allowed by the tool choice",
    Problem.DISCONNECTED: "was interrupted: the connection closed",
}
_AVAILABLE: Final = "available tools:"
_MARGIN: Final = 12
_SHORT: Final = 84
_TAB: Final = 4
_BLANKS: Final = str.maketrans({" ": "·", "\n": "↵", "\t": "→"})


def as_lines(found: Explanation, paint: Paint) -> Iterator[str]:
    """Return the lines to print, with an empty line between the parts."""
    view = _View(paint)
    for part in (_margin, _legend, _results):
        if lines := list(part(found, view)):
            yield from (*lines, "")
    yield from view.notes(found)
    yield paint.ink(found.summary, "" if found.sound else "red", bold=True)


def _margin(found: Explanation, view: "_View") -> Iterator[str]:
    before = "\n"
    for span in found.spans:
        yield from view.span(span, mid_line=not before.endswith("\n"))
        before = span.text or before


def _legend(found: Explanation, view: "_View") -> Iterator[str]:
    kinds = {span.kind for span in found.spans}
    return view.legend(kind for kind in SpanKind if kind in kinds)


def _results(found: Explanation, view: "_View") -> Iterator[str]:
    for number, call in enumerate(found.calls, start=1):
        yield from view.call(number, call)
    for number, complaint in enumerate(found.complaints, start=1):
        yield from view.complaint(number, complaint, guessed=found.guessed)


class _View:
    """Formats the parts for a width, with colours or without."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._room = max(paint.width - _MARGIN - 3, 0)
        self._bar = paint.ink("│", dim=True) if paint.on else "|"

    def span(self, span: Span, *, mid_line: bool) -> Iterator[str]:
        """Write a span beside its label, without the line break that only ends the line above."""
        text = span.text.removeprefix("\n") if mid_line and span.text.strip() else span.text
        label, color = self._label(span.kind, span.number), _COLORS[span.kind]
        for line in self._rows(text):
            yield f"{label} {self._bar} {self._paint.ink(line, color)}".rstrip(" ")
            label = " " * _MARGIN

    def legend(self, kinds: Iterable[SpanKind]) -> Iterator[str]:
        """Explain the labels that occur."""
        line, length = "", 0
        for kind in kinds:
            word, meaning = str(kind), SPAN_MEANINGS[kind]
            if length + len(f"{word}: {meaning}") > (self._room or _SHORT):
                yield self._beside("", line)
                line, length = "", 0
            line += f"{self._paint.ink(word, _COLORS[kind])}{self._paint.ink(f': {meaning}', dim=True)}   "
            length += len(f"{word}: {meaning}   ")
        if line:
            yield self._beside("", line)

    def call(self, number: int, call: Call) -> Iterator[str]:
        """Write a call: name, arguments, fixes."""
        name = visible(call.name)
        head, *more = indented(visible(call.arguments), (self._room or _SHORT) - len(name) - 1)
        yield self._beside(self._label(SpanKind.CALL, number), f"{self._paint.ink(name, bold=True)} {head}")
        yield from self._below(more)
        yield from self._below((f"fixed: {_fixed(fix)}" for fix in call.fixes), "yellow")

    def complaint(self, number: int, complaint: Complaint, *, guessed: bool) -> Iterator[str]:
        """Write why a call was rejected, and what is accepted unless that would be a guess."""
        name = "a call without a name" if complaint.name is None else visible(complaint.name).replace("\n", "↵")
        head = f"{self._paint.ink(name, bold=True)} {_PROBLEMS[complaint.problem]}"
        yield self._beside(self._label(SpanKind.INVALID, number), head)
        said = complaint.detail.split("; ")
        yield from self._below(line for line in said if not (guessed and line.startswith(_AVAILABLE)))

    def notes(self, found: Explanation) -> Iterator[str]:
        """Return which tools were guessed, and which dialects find more."""
        if found.guessed and found.complaints and not found.tools:
            yield from self._note("The tools are unknown. Pass --tools FILE or --tool NAME.")
        if found.guessed and found.tools:
            yield from self._note(f"Guessed tools: {', '.join(found.tools)}. Pass --tools FILE to check the arguments.")
        if found.better:
            options = " or ".join(f"--dialect {name}" for name in found.better[:3])
            yield from self._note(f"This dialect finds no calls. Try {options}.")
        if found.quoted:
            yield from self._note(
                f"A code block reads as a call of {', '.join(found.quoted)}, and there is text beside it, so it counts "
                "as an example and not as a call. If the model means such blocks as calls, let toolspeak "
                "teach it a marked form: --mode force, or `toolspeak doctor`."
            )

    def _note(self, text: str) -> Iterator[str]:
        return (self._paint.ink(line, dim=True) for line in wrap_columns(visible(text), self._paint.width))

    def _label(self, kind: SpanKind, number: int = 0) -> str:
        words = f"{kind} {number}" if number else str(kind)
        words = words if self._paint.on else f"[{words}]"
        return self._paint.ink(words.rjust(_MARGIN), _COLORS[kind], bold=True)

    def _beside(self, label: str, text: str) -> str:
        return f"{label or ' ' * _MARGIN}   {text}".rstrip(" ")

    def _below(self, lines: Iterable[str], color: str = "") -> Iterator[str]:
        for line in lines:
            for row in self._rows(line) if line else ():
                yield self._beside("", self._paint.ink(row, color))

    def _rows(self, text: str) -> Iterator[str]:
        """Split a text into rows that fit. Text of only blanks is shown with symbols, because it would be invisible."""
        if not text:
            yield self._paint.ink("(in the text above)", dim=True)
        elif not text.strip(" \n\t"):
            yield from wrap_columns(text.translate(_BLANKS), self._room)
        else:
            lines = visible(text).removesuffix("\n").split("\n")
            for line in lines:
                yield from wrap_columns(line.expandtabs(_TAB) if self._room else line, self._room)


def _fixed(fix: Fix) -> str:
    what = fix.what.replace("_", " ")
    return f"{what} at {fix.path}" if fix.path else what


# ---------------------------------------------------------------- for programs


def as_json_text(found: Explanation) -> str:
    """Return the explanation as one JSON object, safe to print."""
    return safe_json(
        {
            "summary": found.summary,
            "dialect": found.dialect,
            "tools": [*found.tools],
            "tools_guessed": found.guessed,
            "lossless": found.lossless,
            "same_in_chunks": found.same_in_chunks if found.chunk is not None else None,
            "better_dialects": [*found.better],
            "quoted_calls": [*found.quoted],
            "spans": _span_objects(found),
            "calls": [
                {"name": call.name, "arguments": parse(call.arguments), "fixes": fix_objects(call.fixes)}
                for call in found.calls
            ],
            "complaints": complaint_objects(found.complaints),
        }
    )


def _span_objects(found: Explanation) -> list[Json]:
    """List the spans; `index` is the position in `calls` or `complaints`."""
    return [
        {
            "kind": str(span.kind),
            "start": span.start,
            "end": span.start + len(span.text),
            "text": span.text,
            **({"index": span.number - 1} if span.kind in (SpanKind.CALL, SpanKind.INVALID) else {}),
        }
        for span in found.spans
    ]

"""An explanation as text (the labelled text, the calls, the complaints, a summary) and as JSON.

  text | Checking.
call 1 | <tool_call>
       | {"name": "find_bus", "arguments": {"stop": "Oslo S"}}
debris | </tool_call>
"""

from collections.abc import Iterable, Iterator
from typing import Final

from toolspeak.cli.explain.explanation import Explanation, Kind, Span
from toolspeak.cli.json_output import complaint_objects, fix_objects, indented, safe_json
from toolspeak.cli.terminal import Paint, visible, wrapped
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.text.strict import parse

_COLORS: Final = {
    Kind.TEXT: "",
    Kind.REASONING: "cyan",
    Kind.CALL: "green",
    Kind.INVALID: "red",
    Kind.DEBRIS: "bright_black",
    Kind.FORGED: "magenta",
    Kind.LIMIT: "yellow",
}
_MEANINGS: Final = {
    Kind.TEXT: "the answer",
    Kind.REASONING: "the model's reasoning",
    Kind.CALL: "a valid call",
    Kind.INVALID: "a rejected call",
    Kind.DEBRIS: "leftover markup, dropped",
    Kind.FORGED: "a tool result that the model invented, dropped",
    Kind.LIMIT: "beyond a limit, dropped",
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
    return view.legend(kind for kind in Kind if kind in kinds)


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

    def legend(self, kinds: Iterable[Kind]) -> Iterator[str]:
        """Explain the labels that occur."""
        line, length = "", 0
        for kind in kinds:
            word, meaning = str(kind), _MEANINGS[kind]
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
        yield self._beside(self._label(Kind.CALL, number), f"{self._paint.ink(name, bold=True)} {head}")
        yield from self._below(more)
        yield from self._below((f"fixed: {_fixed(fix)}" for fix in call.fixes), "yellow")

    def complaint(self, number: int, complaint: Complaint, *, guessed: bool) -> Iterator[str]:
        """Write why a call was rejected, and what is accepted unless that would be a guess."""
        name = "a call without a name" if complaint.name is None else visible(complaint.name).replace("\n", "↵")
        head = f"{self._paint.ink(name, bold=True)} {_PROBLEMS[complaint.problem]}"
        yield self._beside(self._label(Kind.INVALID, number), head)
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

    def _note(self, text: str) -> Iterator[str]:
        return (self._paint.ink(line, dim=True) for line in wrapped(visible(text), self._paint.width))

    def _label(self, kind: Kind, number: int = 0) -> str:
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
            yield from wrapped(text.translate(_BLANKS), self._room)
        else:
            lines = visible(text).removesuffix("\n").split("\n")
            for line in lines:
                yield from wrapped(line.expandtabs(_TAB) if self._room else line, self._room)


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
            **({"index": span.number - 1} if span.kind in (Kind.CALL, Kind.INVALID) else {}),
        }
        for span in found.spans
    ]

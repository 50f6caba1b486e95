"""An explanation for people: the text with a margin that says what it is, then the calls, the complaints, one line.

  text | Checking.
call 1 | <tool_call>
       | {"name": "find_bus", "arguments": {"stop": "Oslo S"}}
debris | </tool_call>
"""

from collections.abc import Iterable, Iterator
from typing import Final

from toolspeak.cli._explanation import Explanation, Kind, Span
from toolspeak.cli.json_output import indented
from toolspeak.cli.terminal import Paint, visible, wrapped
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.fix import Fix
from toolspeak.ir.message import Call

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
    Kind.TEXT: "what people see",
    Kind.REASONING: "what the model thought",
    Kind.CALL: "may run",
    Kind.INVALID: "an attempt that may not run",
    Kind.DEBRIS: "markup, dropped",
    Kind.FORGED: "a result that the model made up, cut off",
    Kind.LIMIT: "over a limit, cut off",
}
_PROBLEMS: Final = {
    Problem.PARSE_ERROR: "cannot be read",
    Problem.TRUNCATED: "is cut off",
    Problem.UNKNOWN_TOOL: "is no tool",
    Problem.AMBIGUOUS: "could be more than one tool",
    Problem.SCHEMA_ERROR: "has arguments that do not fit",
    Problem.WRONG_TOOL: "may not be called now",
    Problem.DISCONNECTED: "broke off",
}
_AVAILABLE: Final = "available tools:"
_MARGIN: Final = 12
_SHORT: Final = 84
_TAB: Final = 4
_BLANKS: Final = str.maketrans({" ": "·", "\n": "↵", "\t": "→"})


def as_lines(found: Explanation, paint: Paint) -> Iterator[str]:
    """Write the explanation, without line ends; an empty line between its parts."""
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
    """How the parts look, with colours or without."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._room = max(paint.width - _MARGIN - 3, 0)
        self._bar = paint.ink("│", dim=True) if paint.on else "|"

    def span(self, span: Span, *, mid_line: bool) -> Iterator[str]:
        """Write a stretch of the text beside its label; a first line end that only ends the line above is not shown."""
        text = span.text.removeprefix("\n") if mid_line and span.text.strip() else span.text
        label, color = self._label(span.kind, span.number), _COLORS[span.kind]
        for line in self._rows(text):
            yield f"{label} {self._bar} {self._paint.ink(line, color)}".rstrip(" ")
            label = " " * _MARGIN

    def legend(self, kinds: Iterable[Kind]) -> Iterator[str]:
        """Say what the labels mean that are there."""
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
        """Write why an attempt is no call, and what is accepted, as far as that is not a guess."""
        name = "a call without a name" if complaint.name is None else visible(complaint.name).replace("\n", "↵")
        head = f"{self._paint.ink(name, bold=True)} {_PROBLEMS[complaint.problem]}"
        yield self._beside(self._label(Kind.INVALID, number), head)
        said = complaint.detail.split("; ")
        yield from self._below(line for line in said if not (guessed and line.startswith(_AVAILABLE)))

    def notes(self, found: Explanation) -> Iterator[str]:
        """Say what had to be guessed, and what may work better."""
        if found.guessed and found.complaints and not found.tools:
            yield from self._note("The tools are not known. Give --tools FILE or --tool NAME.")
        if found.guessed and found.tools:
            yield from self._note(
                f"The tools are guessed: {', '.join(found.tools)}. Give --tools to check the arguments."
            )
        if found.better:
            options = " or ".join(f"--dialect {name}" for name in found.better[:3])
            yield from self._note(f"Calls would be found with {options}.")

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
        """Cut a text in lines that fit; blanks alone are shown by signs, for else nobody sees them."""
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

"""An answer in the terminal: text, reasoning and calls as they arrive, then a status line; or one JSON object.

The user asks for the weather.        reasoning, dim
▸ get_weather(city="Oslo")  1 fix
native checked · 1 request · 21 tokens in, 13 out · 0.8 s

The model's text goes to standard output; reasoning and the status line go to standard error. A line break is printed
only when more text follows, so that an answer has no empty lines around it.
"""

import sys
from collections.abc import Iterator
from typing import Final, assert_never

import click

from toolspeak.cli.json_output import arguments_text, complaint_objects, fix_objects, indented
from toolspeak.cli.terminal import INDENT, UNLIMITED, Paint, below, counted, cut, dotted, sign, visible
from toolspeak.client import Answer
from toolspeak.engine.outcome import EMULATED
from toolspeak.engine.plan import Way
from toolspeak.errors import BadJson
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.turn import fold
from toolspeak.text.strict import parse

_CUTS: Final = {
    StopReason.LENGTH: "cut off: the answer reached the token limit",
    StopReason.FILTER: "cut off by a content filter of the upstream",
}


# ---------------------------------------------------------------- while it arrives


class Screen:
    """Prints the events of one turn."""

    def __init__(self, paint: Paint, *, expand: bool) -> None:
        """Start; on a terminal, show an ellipsis until the first event."""
        self._paint: Final = paint
        self._expand: Final = expand
        self._text: Final = _Block(paint)
        self._reasoning: Final = _Block(paint, is_reasoning=True)
        self._open: Final[dict[str, list[Event]]] = {}
        self._waiting = bool(paint.width) and sys.stderr.isatty()
        if self._waiting:
            click.echo(paint.ink(sign("…", "."), dim=True), err=True, nl=False)

    def feed(self, event: Event) -> None:
        """Print one more event."""
        match event:
            case TextDelta(text):
                self._write(self._text, text)
            case ReasoningDelta(text):
                self._write(self._reasoning, text)
            case CallStarted(id):
                self._open[id] = [event]
            case ArgsDelta(id):
                self._open[id].append(event)
            case CallEnded(id):
                whole = fold((*self._open.pop(id), event)).calls[0]
                self._lines(call_lines(whole, self._paint, expand=self._expand))
            case CallRejected():
                self._lines(rejected_lines(event, self._paint, expand=self._expand))
            case Discarded() | Finished() | Failed():
                pass
            case _:
                assert_never(event)

    def finish(self) -> None:
        """End the open line, if there is one."""
        self._clear_ellipsis()
        self._reasoning.end()
        self._text.end()

    def _write(self, block: "_Block", text: str) -> None:
        other = self._text if block is self._reasoning else self._reasoning
        if text.strip("\n"):
            self._clear_ellipsis()
            other.end()
        block.write(text)

    def _lines(self, lines: Iterator[str]) -> None:
        self.finish()
        for line in lines:
            click.echo(line)

    def _clear_ellipsis(self) -> None:
        # A carriage return and a blank work on every terminal, also on those without escape sequences.
        if self._waiting:
            self._waiting = False
            click.echo("\r \r", err=True, nl=False)


class _Block:
    """A stretch of text on one of the two streams."""

    def __init__(self, paint: Paint, *, is_reasoning: bool = False) -> None:
        self._paint: Final = paint
        self._is_reasoning: Final = is_reasoning
        self._begun = False
        self._held = ""
        """Line breaks that are printed once more text follows."""

    def write(self, text: str) -> None:
        shown = visible(self._held + text)
        kept = shown.rstrip("\n")
        self._held = shown[len(kept) :] if self._begun or kept else ""
        if kept:
            self._echo(kept if self._begun else self._first(kept.lstrip("\n")))
            self._begun = True

    def end(self) -> None:
        if self._begun:  # an empty line separates reasoning from the text
            click.echo("\n" if self._is_reasoning else "", err=self._is_reasoning)
        self._begun, self._held = False, ""

    def _first(self, text: str) -> str:
        """Label reasoning if it cannot be dim."""
        return f"[reasoning] {text}" if self._is_reasoning and not self._paint.on else text

    def _echo(self, text: str) -> None:
        click.echo(self._paint.ink(text, dim=self._is_reasoning), err=self._is_reasoning, nl=False)


# ---------------------------------------------------------------- calls


def call_lines(call: Call, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a valid call on one line; expanded, also its full arguments, its repairs and its raw text."""
    name, arguments = visible(call.name), arguments_text(call.arguments)
    fixed = counted(len(call.fixes), "fix") if call.fixes else ""
    mark = sign("▸", ">")
    room = max(paint.width - len(f"{mark} {name}()  {fixed}"), 1) if paint.width else 0
    head = f"{paint.ink(mark, 'green')} {paint.ink(name, bold=True)}({cut(arguments, room)})"
    yield f"{head}  {paint.ink(fixed, 'yellow')}".rstrip(" ")
    if expand:
        yield from below(indented(visible(call.arguments), (paint.width or UNLIMITED) - len(INDENT)), paint)
        yield from below((f"fixed: {fix.what.replace('_', ' ')} {fix.path}" for fix in call.fixes), paint, "yellow")
        yield from _raw(call.raw, paint)


def rejected_lines(event: CallRejected, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a rejected call and the kind of problem; expanded, also the details and its raw text."""
    complaint = event.complaint
    mark, name = sign("✗", "x"), visible(complaint.name or "a call").replace("\n", " ")
    why = str(complaint.problem).replace("_", " ")
    yield f"{paint.ink(mark, 'red')} {paint.ink(name, bold=True)}  {paint.ink(why, 'red')}"
    if expand:
        yield from below(filter(None, [visible(complaint.detail)]), paint)
        yield from _raw(event.raw, paint)


def _raw(raw: str, paint: Paint) -> Iterator[str]:
    return below(filter(None, visible(raw).strip("\n").split("\n")), paint, dim=True)


# ---------------------------------------------------------------- when it is complete


def last_lines(answer: Answer, seconds: float, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write the status line, after a warning if the answer was cut off; expanded, also the reason for the plan."""
    stop = answer.turn.stop
    if stop is not None and stop in _CUTS:
        yield paint.ink(_CUTS[stop], "yellow")
    plan, _, why = answer.plan.line.partition(": ")
    emulated = EMULATED in answer.warnings and answer.plan.way is not Way.FORCE
    words = [f"{plan}, then emulated" if emulated else plan, counted(answer.requests, "request")]
    if answer.complaints:
        words.append(counted(len(answer.complaints), "complaint"))
    words += [*_tokens(answer.usage), f"{seconds:.1f} s"]
    for line in (dotted(*words), *([why] if expand else [])):
        yield paint.ink(line, dim=True) if paint.on else f"[{line}]"


def _tokens(usage: Usage) -> Iterator[str]:
    """Write the token counts, if the upstream reports them."""
    if usage.input_tokens or usage.output_tokens:
        yield f"{counted(usage.input_tokens, 'token')} in, {usage.output_tokens} out"


def answer_object(answer: Answer, seconds: float) -> JsonObject:
    """Return the answer as an object for programs."""
    turn, usage = answer.turn, answer.usage
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "calls": [_call_object(call) for call in answer.calls],
        "complaints": complaint_objects(answer.complaints),
        "stop": str(turn.stop) if turn.stop else None,
        "plan": answer.plan.line,
        "warnings": [*answer.warnings],
        "requests": answer.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "seconds": round(seconds, 3),
    }


def _call_object(call: Call) -> JsonObject:
    return {
        "id": call.id,
        "name": call.name,
        "arguments": _value(call.arguments),
        "fixes": fix_objects(call.fixes),
        "raw": call.raw,
    }


def _value(arguments: str) -> Json:
    """Parse arguments. With mode off they are unchecked: invalid JSON stays a string."""
    try:
        return parse(arguments)
    except BadJson:
        return arguments

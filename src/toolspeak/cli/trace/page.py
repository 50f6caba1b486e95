"""Prints traces: a list, the story of one turn, two answers side by side."""

import time
from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Final

import click
import msgspec

from toolspeak.cli.output import keyword_arguments, safe_json
from toolspeak.cli.terminal import Paint, count_noun, duration_text, shorten, visible, wrap_columns
from toolspeak.cli.trace.source import GatewayTraces
from toolspeak.engine.settings import Settings
from toolspeak.errors import BadRequest
from toolspeak.ir.span import SPAN_MEANINGS, SpanKind
from toolspeak.traces.audit import audit
from toolspeak.traces.export import as_case, as_curl, as_markdown, shrink
from toolspeak.traces.replay import Replay, replay_turn, told_parts
from toolspeak.traces.store import Summary
from toolspeak.traces.trace import CALL, AnswerPart, Trace, TraceAttempt, parts_of

_PAUSE: Final = 1.0
"""Seconds between two looks of --follow."""
_SHORT_ID: Final = 8
_COLORS: Final = {
    SpanKind.TEXT: "",
    SpanKind.REASONING: "cyan",
    SpanKind.CALL: "green",
    SpanKind.INVALID: "red",
    SpanKind.DEBRIS: "bright_black",
    SpanKind.FORGED: "magenta",
    SpanKind.LIMIT: "yellow",
}
_MOST_AUDITED: Final = 8
_MARGIN, _LEAST_ROOM = 16, 20
"""Columns beside the text of a model, and the fewest for that text."""


class TracePage:
    """Prints traces for people, or with `is_json` for programs."""

    def __init__(self, paint: Paint, *, is_json: bool) -> None:
        """Take the colours and the width."""
        self._paint, self._is_json = paint, is_json

    # ------------------------------------------------------------ the list

    def echo_list(self, gateway: GatewayTraces, search: str, *, failed: bool, limit: int, follows: bool) -> None:
        """Print the newest traces, the newest last, and with `follows` each new one until Ctrl-C."""
        listing = gateway.listing(search, failed=failed, limit=limit)
        if not (listing.running or listing.traces or follows):
            click.echo("No trace matches." if search or failed else "No traces yet. Send the gateway a request first.")
        seen = {one.id for one in listing.traces}
        for line in (*reversed(listing.traces), *listing.running):
            self._echo_line(line)
        while follows:
            Event().wait(_PAUSE)
            fresh = [one for one in gateway.listing(search, failed=failed, limit=200).traces if one.id not in seen]
            for line in reversed(fresh):
                self._echo_line(line)
            seen |= {one.id for one in fresh}

    def _echo_line(self, line: Summary) -> None:
        click.echo(msgspec.json.encode(line).decode() if self._is_json else self._line(line))

    def _line(self, line: Summary) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(line.time))
        route = f"{line.model} → {line.upstream}"
        if line.waits_for:
            words = (clock, line.id[:_SHORT_ID], "running", route, line.waits_for)
            return self._paint.ink(shorten(visible("  ".join(words)), self._paint.width), "cyan")
        told = (
            line.plan.partition(" ")[0],
            ", ".join(line.calls) or "no calls",
            *([count_noun(line.requests, "request")] if line.requests != 1 else []),
            *([count_noun(line.complaints, "complaint")] if line.complaints else []),
            *([line.error] if line.error else []),
            f"{line.input_tokens}+{line.output_tokens} tokens",
            duration_text(line.seconds),
        )
        text = "  ".join((clock, line.id[:_SHORT_ID], str(line.status), route, *told))
        color = "red" if line.error else "yellow" if line.complaints else ""
        return self._paint.ink(shorten(visible(text), self._paint.width), color)

    # ------------------------------------------------------------ one trace

    def echo_trace(self, trace: Trace, format: str, url: str, attempt: int | None, *, shrinks: bool) -> None:
        """Print one trace."""
        if shrinks or format == "case":
            number = _wanted_attempt(trace, attempt)
            text = shrink(trace, number) if shrinks else None
            click.echo(msgspec.json.encode(as_case(trace, number, text)).decode() if format == "case" else text)
        elif format == "json":
            click.echo(safe_json(msgspec.to_builtins(trace)))
        elif format == "markdown":
            click.echo(as_markdown(trace), nl=False)
        elif format == "curl":
            click.echo(as_curl(trace, url))
        else:
            click.echo("\n".join(self.lines(trace)))

    def lines(self, trace: Trace) -> Iterator[str]:
        """Yield the story of a turn, in the order in which it happened."""
        yield from self._request(trace)
        again = replay_turn(trace) if trace.has_content else None
        for number, attempt in enumerate(trace.attempts):
            yield from self._attempt(attempt, number, again)
        yield from self._answer(trace)
        if again is not None:
            yield from self._context(again)
            if not again.is_same:
                yield self._note("This version of toolspeak reads these answers in another way than the one that ran.")
        elif trace.attempts:
            yield self._note("Kept without content: set content = true under [traces] to see what was written.")

    def _request(self, trace: Trace) -> Iterator[str]:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trace.time))
        yield self._head(f"trace {trace.id}", f"{when}  {trace.wire}  {trace.tenant}".rstrip())
        yield f"  model     {visible(trace.model)} → {visible(trace.upstream)}:{visible(trace.upstream_model)}"
        yield f"  plan      {visible(trace.plan.line)}"
        if trace.taken and trace.taken != trace.plan.line:
            yield f"  taken     {visible(trace.taken)}"

    def _attempt(self, attempt: TraceAttempt, number: int, again: Replay | None) -> Iterator[str]:
        yield ""
        times = f"sent at {attempt.opened:.2f} s"
        times += "" if attempt.first is None else f", first event at {attempt.first:.2f} s"
        times += "" if attempt.ended is None else f", over at {attempt.ended:.2f} s"
        tokens = f"{attempt.usage.input_tokens}+{attempt.usage.output_tokens} tokens"
        yield self._head(f"attempt {number + 1} · {attempt.tactic}", f"{times}, {tokens}")
        if attempt.why:
            yield f"  asked again: {visible(attempt.why)}" if number else f"  {visible(attempt.why)}"
        if attempt.failure is not None:
            yield self._paint.ink(f"  failed: {attempt.failure.kind} {visible(attempt.failure.message)}", "red")
        for part in attempt.parts:
            if part.kind == CALL:
                yield from self._part(part)
        if again is not None and number < len(again.attempts):
            yield from self._spans(again, number)

    def _spans(self, again: Replay, number: int) -> Iterator[str]:
        attempt = again.attempts[number]
        for span in attempt.spans:
            label = f"{span.kind} {span.number}" if span.number else str(span.kind)
            for row in self._rows(span.text):
                yield f"  {label:>10} │ {self._paint.ink(row, _COLORS[span.kind])}"
                label = ""
        kinds = {span.kind for span in attempt.spans} - {SpanKind.TEXT}
        yield from (self._note(f"{'':13}{kind}: {SPAN_MEANINGS[kind]}") for kind in SpanKind if kind in kinds)
        for call in attempt.turn.calls:
            for fix in call.fixes:
                where = f" at {fix.path}" if fix.path else ""
                yield self._paint.ink(f"  fixed: {fix.what.replace('_', ' ')}{where}", "yellow")
        for one in attempt.turn.complaints:
            name = visible(one.name or "a call")
            yield self._paint.ink(f"  rejected: {name}: {one.problem} {visible(one.detail)}", "red")

    def _answer(self, trace: Trace) -> Iterator[str]:
        yield ""
        first = "" if trace.first is None else f", first byte after {trace.first:.2f} s"
        usage = trace.usage
        cost = f"{usage.input_tokens}+{usage.output_tokens} tokens in {count_noun(len(trace.attempts), 'request')}"
        yield self._head("answer", f"status {trace.status}{first}, {trace.seconds:.2f} s, {cost}")
        for part in trace.answer:
            yield from self._part(part)
        if trace.failure is not None:
            yield self._paint.ink(f"  failed: {trace.failure.kind} {visible(trace.failure.message)}", "red")

    def _part(self, part: AnswerPart) -> Iterator[str]:
        if part.kind == CALL:
            yield f"  {'call':>10} │ {visible(part.name)}({keyword_arguments(part.text) if part.text else ''})"
            return
        label = part.kind
        for row in self._rows(part.text):
            yield f"  {label:>10} │ {row}"
            label = ""

    def _context(self, again: Replay) -> Iterator[str]:
        """Yield what takes most of the context, the largest first."""
        rows = audit(again.request)
        if not rows:
            return
        yield ""
        yield self._head("context", f"about {sum(row.tokens for row in rows)} tokens")
        for row in rows[:_MOST_AUDITED]:
            yield f"  {row.tokens:>8}  {row.share:>4.0%}  {visible(row.what)}"
        if len(rows) > _MOST_AUDITED:
            yield self._note(f"  and {count_noun(len(rows) - _MOST_AUDITED, 'smaller part')}")

    # ------------------------------------------------------------ two answers

    def echo_replay(self, trace: Trace, asked: Mapping[str, str]) -> None:
        """Print what the client got, and what it would have got of the same answers under other settings."""
        try:
            settings = msgspec.convert(asked, Settings)
        except msgspec.ValidationError as error:
            raise BadRequest(f"--mode: {error}. It is one of off, fallback, force, auto.") from None
        other = replay_turn(trace, settings)
        self._echo_answers(trace, other.outcome.taken.line, parts_of(other.outcome.events))
        missing = sum(not one.is_recorded for one in other.attempts)
        if missing:
            click.echo(self._note(f"{count_noun(missing, 'request')} would be new: the trace has no answer to it."))
        click.echo("the same answer" if other.is_same else "another answer")

    def echo_asked_again(self, trace: Trace, now: Trace) -> None:
        """Print what the client got, and what the model answers now."""
        self._echo_answers(trace, now.taken or now.plan.line, now.answer)
        if now.failure is not None:
            click.echo(self._paint.ink(f"  failed: {now.failure.kind} {visible(now.failure.message)}", "red"))
        more = f"`toolspeak trace {now.id[:_SHORT_ID]}` has the rest."
        click.echo(self._note(f"then {_cost(trace)}, now {_cost(now)}. {more}"))
        click.echo("the same answer" if told_parts(trace.answer) == told_parts(now.answer) else "another answer")

    def _echo_answers(self, trace: Trace, line: str, parts: Sequence[AnswerPart]) -> None:
        for name, plan, answer in (("then", trace.taken or trace.plan.line, trace.answer), ("now", line, parts)):
            click.echo(self._head(name, plan))
            for part in answer:
                click.echo("\n".join(self._part(part)))

    # ------------------------------------------------------------ pieces

    def _head(self, name: str, words: str) -> str:
        return f"{self._paint.ink(name, bold=True)}  {self._paint.ink(visible(words), dim=True)}"

    def _note(self, text: str) -> str:
        return self._paint.ink(text, dim=True)

    def _rows(self, text: str) -> Iterator[str]:
        room = max(_LEAST_ROOM, self._paint.width - _MARGIN) if self._paint.width else 0
        for line in visible(text).split("\n"):
            yield from wrap_columns(line, room) if line else ("",)


def _cost(trace: Trace) -> str:
    return f"{trace.usage.input_tokens}+{trace.usage.output_tokens} tokens in {duration_text(trace.seconds)}"


def _wanted_attempt(trace: Trace, attempt: int | None) -> int:
    """Return the index of the attempt: the first with complaints, else the last, unless the user names one."""
    if attempt is not None:
        return attempt - 1
    read = replay_turn(trace).attempts
    return next((at for at, one in enumerate(read) if one.turn.complaints), len(read) - 1)

"""Writes a trace for other tools and people: Markdown, a cURL command, a case for a corpus of model outputs.

`shrink` cuts a model's text down to the smallest one that is still read in the same wrong way.
"""

from collections.abc import Callable
from typing import Final

from toolspeak.dialects import load_together
from toolspeak.errors import BadRequest
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.span import SPAN_MEANINGS
from toolspeak.ir.turn import Turn
from toolspeak.text.strict import parse
from toolspeak.traces.replay import Replay, ReplayedAttempt, client_request, replay_turn
from toolspeak.traces.trace import Trace

_MOST_TRIES: Final = 2000
"""Readings that `shrink` may use: it is interactive, and a result that is not the smallest is still useful."""


def as_curl(trace: Trace, url: str) -> str:
    """Return the client's request as a command for a shell; a key is a variable in it."""
    body = trace.body.replace("'", "'\\''")
    return (
        f"curl {url.rstrip('/')}{trace.path} \\\n  -H 'content-type: application/json' \\\n"
        f"  -H \"authorization: Bearer $TOOLSPEAK_KEY\" \\\n  -d '{body}'"
    )


def as_case(trace: Trace, attempt: int, text: str | None = None) -> JsonObject:
    """Return the text of an attempt as a case of the field corpus (`just field`).

    `expect` is what toolspeak reads today. If that is wrong, a person writes the right calls there: the case then fails
    until the reader is mended.
    """
    read = _read_attempt(trace, attempt)
    raw = trace.attempts[attempt].text if text is None else text
    tools = [_tool_object(tool.name, tool.parameters) for tool in client_request(trace).tools]
    calls: list[Json] = [_call_object(call) for call in _reader(trace, read)(raw).calls]
    return {
        "id": f"trace-{trace.id}",
        "source": f"trace {trace.id}, attempt {attempt + 1}",
        "model": trace.upstream_model,
        "group": "call",
        "dialect": read.dialect.partition(" + ")[0],
        "tools": [*tools],
        "text": raw,
        "expect": {"calls": calls},
        "note": "expect is what is read today: write the calls that the model meant",
    }


def _tool_object(name: str, parameters: JsonObject) -> JsonObject:
    return {"name": name, "parameters": parameters}


def _call_object(call: Call) -> JsonObject:
    return {"name": call.name, "arguments": parse(call.arguments)}


def _read_attempt(trace: Trace, number: int) -> ReplayedAttempt:
    attempts = replay_turn(trace).attempts
    if not 0 <= number < len(attempts):
        raise BadRequest(f"the trace has {len(attempts)} attempts, and no number {number + 1}")
    if not attempts[number].dialect:
        raise BadRequest(f"the text of attempt {number + 1} was passed on unread, so there is nothing to export")
    return attempts[number]


def _reader(trace: Trace, attempt: ReplayedAttempt) -> Callable[[str], Turn]:
    dialect, tools = load_together(*attempt.dialect.split(" + ")), client_request(trace).tools
    return lambda text: dialect.read(text, tools)


# ---------------------------------------------------------------- shrinking


def shrink(trace: Trace, attempt: int) -> str:
    """Return the smallest text found that is read as the attempt's text is: the same problems, calls of the same tools.

    This is delta debugging: stretches are removed, from half of the text down to single characters, as long as the
    result stays alike.
    """
    read = _reader(trace, _read_attempt(trace, attempt))
    text = trace.attempts[attempt].text
    wanted = _looks(read(text))
    return smallest(text, lambda candidate: _looks(read(candidate)) == wanted)


def _looks(turn: Turn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    problems = tuple(f"{one.problem} {one.name}" for one in turn.complaints)
    return problems, tuple(call.name for call in turn.calls)


def smallest(text: str, is_alike: Callable[[str], bool], tries: int = _MOST_TRIES) -> str:
    """Return a text from which no single stretch of the tried lengths can be removed."""
    length = max(1, len(text) // 2)
    while length:
        start, removed = 0, False
        while start < len(text) and tries > 0:
            candidate = text[:start] + text[start + length :]
            tries -= 1
            if is_alike(candidate):
                text, removed = candidate, True
            else:
                start += length
        length = length if removed and length == 1 and tries > 0 else length // 2
    return text


# ---------------------------------------------------------------- Markdown


def as_markdown(trace: Trace) -> str:
    """Return the trace as a page for an issue or a message."""
    again = replay_turn(trace) if trace.has_content else None
    lines = [
        f"# Trace {trace.id}",
        "",
        f"- model: `{trace.model}` → `{trace.upstream}:{trace.upstream_model}`",
        f"- plan: {trace.plan.line}",
        *([f"- carried out: {trace.taken}"] if trace.taken not in ("", trace.plan.line) else []),
        f"- status {trace.status}, {trace.seconds:.1f} s",
        f"- tokens: {trace.usage.input_tokens} in, {trace.usage.output_tokens} out, in {len(trace.attempts)} requests",
        f"- toolspeak {trace.version or 'of unknown version'}",
    ]
    if trace.failure is not None:
        lines.append(f"- failed: {trace.failure.kind} {trace.failure.message}")
    for number, attempt in enumerate(trace.attempts):
        lines += ["", f"## Attempt {number + 1}: {attempt.tactic}", ""]
        lines += [f"Sent because {attempt.why}.", ""] if attempt.why else []
        lines += _fenced(attempt.text) if attempt.text else [f"(no text; {attempt.stop or 'no end'})"]
        if again is not None and number < len(again.attempts):
            lines += _reading(again, number)
    lines += ["", "## What the client got", ""]
    for part in trace.answer:
        lines += _fenced(f"{part.name} {part.text}" if part.kind == "call" else part.text)
    return "\n".join(lines) + "\n"


def _reading(again: Replay, number: int) -> list[str]:
    attempt = again.attempts[number]
    kinds = [f"{span.kind} ({SPAN_MEANINGS[span.kind]}): {len(span.text)} characters" for span in attempt.spans]
    fixes = [f"fixed: {fix.what} at `{fix.path or '/'}`" for call in attempt.turn.calls for fix in call.fixes]
    complaints = [f"rejected: {one.name}: {one.problem}: {one.detail}" for one in attempt.turn.complaints]
    return ["", *(f"- {line}" for line in (*kinds, *fixes, *complaints))] if kinds else []


def _fenced(text: str) -> list[str]:
    """Return a text in a fence that is longer than any in it: model text can hold fences of its own."""
    longest = max((len(run) for run in _ticks(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]


def _ticks(text: str) -> list[str]:
    return [run for run in "".join(char if char == "`" else " " for char in text).split(" ") if run]

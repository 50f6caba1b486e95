"""Tells a turn in a few plain sentences: what the client asked, what toolspeak chose, what happened, what it cost."""

from collections.abc import Iterator

from toolspeak.dashboard.formats import duration, plural
from toolspeak.engine.plan import Way
from toolspeak.ir.event import Usage
from toolspeak.ir.request import Request
from toolspeak.traces.trace import Trace

_WAYS = {
    Way.PLAIN: "sent the request without tools",
    Way.OFF: "passed the request on unchanged",
    Way.NATIVE: "sent the tools to the server and checked the calls that came back",
    Way.FALLBACK: "sent the tools to the server, ready to emulate them",
    Way.FORCE: "described the tools in the prompt and read the calls from the model's text",
}
_MOST_NAMES = 3


def tell(trace: Trace, request: Request | None, *, is_running: bool) -> list[str]:
    """Return the sentences; `request` is None if the trace has no content."""
    return [*_asked(trace, request), *_chosen(trace), *_happened(trace), *_ended(trace, is_running=is_running)]


def _asked(trace: Trace, request: Request | None) -> Iterator[str]:
    who = trace.agent or "A client"
    with_what = ""
    if request is not None:
        parts = [plural(len(request.messages), "message")]
        parts += [plural(len(request.tools), "tool")] if request.tools else []
        with_what = f" with {' and '.join(parts)}"
    how = "as a stream" if trace.is_streamed else "as a whole"
    yield f"{who} asked {trace.model} over {trace.wire}{with_what}, and wanted the answer {how}."


def _chosen(trace: Trace) -> Iterator[str]:
    dialect = f" ({trace.plan.settings.dialect})" if trace.plan.way is Way.FORCE and trace.plan.settings.dialect else ""
    yield f"toolspeak {_WAYS[trace.plan.way]}{dialect}, because {trace.plan.why}."
    if trace.taken and trace.taken != trace.plan.line:
        yield f"It then went on in another way: {trace.taken}."
    if trace.tools == "rescued":
        yield "The server returned calls as text, and toolspeak turned them into calls."


def _happened(trace: Trace) -> Iterator[str]:
    rejected = f"toolspeak rejected {plural(len(trace.complaints), 'call')} of the model" if trace.complaints else ""
    if len(trace.attempts) > 1:
        whys = [attempt.why for attempt in trace.attempts[1:] if attempt.why]
        reason = f": {whys[0]}" if whys else ""
        asked = f"asked the model {len(trace.attempts)} times{reason}."
        yield f"{rejected} and {asked}" if rejected else f"toolspeak {asked}"
    elif rejected:
        yield f"{rejected}."


def _ended(trace: Trace, *, is_running: bool) -> Iterator[str]:
    if is_running:
        yield "The turn still runs."
        return
    took, usage, names = duration(trace.seconds), trace.usage, trace.calls
    if trace.failure is not None:
        message = trace.failure.message or "no message was kept"
        yield f"The turn failed after {took} with {trace.failure.kind.replace('_', ' ')}: {message}."
        return
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    got = f"{plural(len(names), 'call')} ({', '.join(names[:_MOST_NAMES])}{more})" if names else "an answer"
    cost = f", for {usage.input_tokens} tokens in and {usage.output_tokens} out" if usage != Usage() else ""
    yield f"The client got {got} after {took}{cost}."

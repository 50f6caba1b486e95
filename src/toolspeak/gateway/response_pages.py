"""The page of one response, its downloads, and its replay under other settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from toolspeak import dialects
from toolspeak.dashboard.excerpt import Room
from toolspeak.dashboard.pages import render
from toolspeak.dashboard.request_view import pretty_json
from toolspeak.dashboard.response_view import view_answer, view_response, view_spans
from toolspeak.engine.settings import Mode, Settings
from toolspeak.errors import BadField
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.page_request import Page, PageRequest
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.traces.export import as_case, as_curl, as_markdown
from toolspeak.traces.replay import replay_turn
from toolspeak.traces.trace import Trace, parts_of

_LONGEST_MORE: Final = 130_000
"""Characters of a text that is shown on demand."""
_MOST_PARTS: Final = 60


async def show_response(request: PageRequest) -> Page:
    """Show a response (`/ui/requests/ID`), a part of it on demand, or a file to download."""
    trace, is_running = await _trace(request)
    compute = request.gateway.viewers.compute
    match request.path[2:]:
        case ():
            return Page(await compute(lambda: _page(request, trace, is_running=is_running)))
        case ("export", form) if form in _EXPORTS:
            return await compute(lambda: _exported(request, trace, _EXPORTS[form]))
        case ("text", number):
            return await compute(lambda: _whole_text(request, trace, _number(number)))
        case ("json",):
            body = await compute(lambda: Room().cut(pretty_json(trace.body), _LONGEST_MORE))
            return request.page("response_text.html", body=body, trace=trace)
        case _:
            raise Refused(Failure(FailureKind.NOT_FOUND, "there is no such page of a request", 404))


async def replay_response(request: PageRequest) -> Page:
    """Read the recorded answers again under another mode or dialect, and show both results side by side."""
    trace, _ = await _trace(request)
    if request.path[2:] != ("replay",):
        raise Refused(Failure(FailureKind.NOT_FOUND, "only a replay can be posted here", 404))
    settings = _settings(await request.form())
    return Page(await request.gateway.viewers.compute(lambda: _replayed(trace, settings)))


async def _trace(request: PageRequest) -> tuple[Trace, bool]:
    id = request.path[1] if len(request.path) > 1 else ""
    traces = request.gateway.traces
    is_running = traces.is_running(id)
    trace = await traces.find(id, request.tenant)
    # A turn that runs goes on while a thread prepares its page.
    return (replace(trace, attempts=[*trace.attempts]) if is_running else trace), is_running


def _page(request: PageRequest, trace: Trace, *, is_running: bool) -> bytes:
    view = view_response(trace, is_running=is_running)
    curl = as_curl(trace, request.address) if trace.body else ""
    return render(
        "response.html",
        request=request,
        title=f"Request {trace.id[:8]}",
        view=view,
        trace=trace,
        curl=curl if len(curl) <= _LONGEST_MORE // 4 else "",
        modes=[mode.value for mode in Mode],
        dialects=sorted(dialects.names()),
    )


def _whole_text(request: PageRequest, trace: Trace, number: int) -> Page:
    attempts = replay_turn(trace).attempts
    if not 1 <= number <= len(attempts):
        raise Refused(Failure(FailureKind.NOT_FOUND, f"the trace has {len(attempts)} attempts", 404))
    spans, left = view_spans(attempts[number - 1], Room(), _LONGEST_MORE)
    return request.page("response_spans.html", spans=spans, left=left, trace=trace, number=number)


# ---------------------------------------------------------------- downloads


@dataclass(frozen=True, slots=True)
class _Export:
    """A form in which a trace can be downloaded."""

    ending: str
    media_type: bytes
    write: Callable[[PageRequest, Trace], bytes]


def _case(request: PageRequest, trace: Trace) -> bytes:
    number = _number(request.query("attempt") or "1")
    return msgspec.json.encode(as_case(trace, number - 1)) + b"\n"


def _text_of(request: PageRequest, trace: Trace) -> bytes:
    number = _number(request.query("attempt") or "1")
    if not 1 <= number <= len(trace.attempts):
        raise Refused(Failure(FailureKind.NOT_FOUND, f"the trace has {len(trace.attempts)} attempts", 404))
    return trace.attempts[number - 1].text.encode("utf-8", "replace")


_PLAIN: Final = b"text/plain; charset=utf-8"
_EXPORTS: Final = {
    "json": _Export("json", b"application/json", lambda _, trace: msgspec.json.encode(trace)),
    "markdown": _Export("md", _PLAIN, lambda _, trace: as_markdown(trace).encode("utf-8", "replace")),
    "curl": _Export("sh", _PLAIN, lambda request, trace: as_curl(trace, request.address).encode("utf-8", "replace")),
    "request": _Export("request.json", b"application/json", lambda _, trace: trace.body.encode("utf-8", "replace")),
    "case": _Export("jsonl", b"application/json", _case),
    "text": _Export("txt", _PLAIN, _text_of),
}


def _exported(request: PageRequest, trace: Trace, export: _Export) -> Page:
    name = f'attachment; filename="trace-{trace.id}.{export.ending}"'
    return Page(export.write(request, trace), 200, export.media_type, ((b"content-disposition", name.encode("ascii")),))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise BadField("attempt", f"{text[:20]!r} is not the number of an attempt")
    return int(text[:6])


# ---------------------------------------------------------------- replay


def _settings(form: dict[str, str]) -> Settings:
    mode, dialect = form.get("mode", ""), form.get("dialect", "")
    if mode and mode not in [one.value for one in Mode]:
        raise BadField("mode", f"{mode[:40]!r} is none of {', '.join(Mode)}")
    if dialect and dialect not in dialects.names():
        raise BadField("dialect", f"there is no dialect {dialect[:40]!r}; `toolspeak dialects` lists them")
    return Settings(mode=Mode(mode) if mode else None, dialect=dialect or None)


def _replayed(trace: Trace, settings: Settings) -> bytes:
    again = replay_turn(trace, settings)
    room = Room()
    then = view_answer(trace.answer[:_MOST_PARTS], room)
    now = view_answer(parts_of(again.outcome.events)[:_MOST_PARTS], room)
    complaints = [
        (one.name or "a call", one.problem.replace("_", " "), one.detail[:300]) for one in again.outcome.complaints
    ]
    return render(
        "replay.html",
        trace=trace,
        again=again,
        then=then,
        now=now,
        complaints=complaints[:20],
        failure=again.outcome.turn.failure,
    )

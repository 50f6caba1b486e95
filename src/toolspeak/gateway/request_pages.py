"""The list of requests, and the stream that keeps it up to date."""

from typing import Final

from toolspeak.dashboard.request_rows import RequestRow, row_of
from toolspeak.gateway.exchange import header
from toolspeak.gateway.page_request import Page, PageRequest
from toolspeak.gateway.request_stream import RowStream, send_rows
from toolspeak.traces.store import TraceQuery

_LISTED: Final = 100
"""Ended turns on the page."""
_FILTERS: Final = ("all", "running", "failed", "asked-again")
_LONGEST_SEARCH: Final = 200


async def show_list(request: PageRequest) -> Page:
    """Show the turns that run and those that have ended; `?show=` filters, `?search=` looks for words."""
    traces, shows = request.gateway.traces, _shows(request)
    since = traces.ended_count  # before the search: a turn that ends meanwhile comes twice, and not never
    rows = await _rows(request, shows) if traces.is_enabled else []
    template = "requests_table.html" if request.is_fragment else "requests.html"
    return await request.gateway.viewers.compute(
        lambda: request.page(
            template,
            title="Requests",
            rows=rows,
            shows=shows,
            search=_words(request),
            since=since,
            is_enabled=traces.is_enabled,
        )
    )


async def stream_list(request: PageRequest) -> None:
    """Send rows that change, by the same filter; `?since=` is the last turn that the page knows."""
    shows = _shows(request)
    known = header(request.exchange, b"last-event-id") or request.query("since")
    since = int(known[:15]) if known.isascii() and known.isdecimal() else 0
    stream = RowStream(request.gateway.traces, _query(request, shows), since, only_running=shows == "running")
    await send_rows(request, stream)


def _shows(request: PageRequest) -> str:
    asked = request.query("show")
    return asked if asked in _FILTERS else _FILTERS[0]


def _words(request: PageRequest) -> str:
    return request.query("search")[:_LONGEST_SEARCH]


def _query(request: PageRequest, shows: str) -> TraceQuery:
    return TraceQuery(request.tenant, _words(request), shows == "failed", shows == "asked-again", _LISTED)


async def _rows(request: PageRequest, shows: str) -> list[RequestRow]:
    query, traces = _query(request, shows), request.gateway.traces
    turns = [(one.summary, one.phase) for one in reversed(await traces.running(request.tenant))]
    running = [row_of(summary, phase) for summary, phase in turns if query.matches(summary)]
    ended = [] if shows == "running" else await traces.search(query)
    return running + [row_of(summary) for summary in ended]

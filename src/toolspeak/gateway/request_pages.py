"""The list of requests, and the stream that keeps it up to date."""

from typing import Final

from toolspeak.dashboard.request_rows import RequestRow, row_of
from toolspeak.gateway.page_request import Page, PageRequest
from toolspeak.traces.store import TraceQuery

_LISTED: Final = 100
"""Ended turns on the page."""
SHOWS: Final = ("all", "running", "failed", "asked-again")
"""The filters of the list."""


async def show_list(request: PageRequest) -> Page:
    """Show the turns that run and those that have ended; `?show=` filters, `?search=` looks for words."""
    traces = request.gateway.traces
    shows = _shows(request)
    rows = await _rows(request, shows) if traces.is_enabled else []
    search = request.query("search")[:200]
    template = "requests_table.html" if request.is_fragment else "requests.html"
    return request.page(template, title="Requests", rows=rows, shows=shows, search=search, is_enabled=traces.is_enabled)


def _shows(request: PageRequest) -> str:
    asked = request.query("show")
    return asked if asked in SHOWS else SHOWS[0]


def _query(request: PageRequest, shows: str) -> TraceQuery:
    words = request.query("search")[:200]
    return TraceQuery(request.tenant, words, shows == "failed", shows == "asked-again", _LISTED)


async def _rows(request: PageRequest, shows: str) -> list[RequestRow]:
    query, traces = _query(request, shows), request.gateway.traces
    running = [row_of(one.summary, one.phase) for one in traces.running(request.tenant) if query.matches(one.summary)]
    running.reverse()
    if shows == "running":
        return running
    return running + [row_of(one) for one in await traces.search(query)]

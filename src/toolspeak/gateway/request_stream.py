"""Keeps the list of requests up to date: a stream of rows, by server-sent events.

A row is sent when its turn begins, when it gets into another phase, and when it ends; the browser counts the seconds in
between by itself. A viewer gets one write every half second at most, and a look at a gateway where nothing happens
compares two numbers.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from toolspeak.dashboard.pages import render
from toolspeak.dashboard.request_rows import RequestRow, row_of
from toolspeak.gateway.exchange import Gone
from toolspeak.gateway.page_request import PageRequest
from toolspeak.gateway.page_stream import PageStream, StreamOver, event_frame
from toolspeak.gateway.peer_traces import LiveTurn
from toolspeak.gateway.trace_log import RunningTurn, TraceLog
from toolspeak.gateway.viewers import passes
from toolspeak.runtime.clock import Clock
from toolspeak.traces.store import Summary, TraceQuery

_MOST_ROWS: Final = 40
"""Rows of one kind in one write: the newest. A list cannot show more, and a busy gateway has no time for them."""
_MOST_KNOWN: Final = 1000
"""Running turns of which a viewer's state is kept."""
_PAUSE: Final = 0.5
"""Seconds between two looks."""
_HOUR: Final = 3600.0


class RowStream:
    """The rows of one viewer."""

    def __init__(self, traces: TraceLog, query: TraceQuery, since: int, *, only_running: bool) -> None:
        """`since` is the number of the last ended turn that the viewer knows; `only_running` removes ended turns."""
        self._traces: Final = traces
        self._query: Final = query
        self._only_running: Final = only_running
        # After a restart of the gateway its numbers begin anew.
        self._seen = since if since <= traces.ended_count else 0
        self._phases: dict[str, tuple[str, int]] = {}
        """What the viewer knows of each turn that runs."""

    async def news(self) -> bytes:
        """Return the events of all that has changed since the last call; empty if nothing has."""
        newest = self._traces.ended_count
        live = await self._traces.live(self._query.tenant, self._seen)
        self._seen = newest
        return b"".join((*self._running_news(live.running), *self._ended_news(live.ended)))

    def _running_news(self, running: Sequence[RunningTurn | LiveTurn]) -> list[bytes]:
        if len(self._phases) > _MOST_KNOWN:  # more turns have ended between two looks than the log remembers
            known = {one.id for one in running}
            self._phases = {id: phase for id, phase in self._phases.items() if id in known}
        changed = [one for one in running if self._phases.get(one.id) != one.state][:_MOST_ROWS]
        events: list[bytes] = []
        for one in changed:
            self._phases[one.id] = one.state
            summary = one.summary
            if self._query.matches(summary):
                events.append(event_frame("row", _rendered(row_of(summary, one.phase))))
        return events

    def _ended_news(self, news: Sequence[tuple[int, Summary]]) -> list[bytes]:
        ended = [one for one in news if self._query.tenant in (None, one[1].tenant)]
        events: list[bytes] = []
        for place, (number, summary) in enumerate(reversed(ended)):
            was_running = self._phases.pop(summary.id, None) is not None
            is_listed = not self._only_running and place < _MOST_ROWS and self._query.matches(summary)
            if is_listed:
                events.append(event_frame("row", _rendered(row_of(summary)), number))
            elif was_running or self._only_running:  # the page itself may have come with its row
                events.append(event_frame("gone", f"r-{summary.id}".encode(), number))
        return events[::-1]


@lru_cache(maxsize=512)
def _rendered(row: RequestRow) -> bytes:
    """Return the HTML of a row, without empty lines. All viewers get the same one."""
    html = render("request_row.html", row=row)
    return b"\n".join(line for line in html.splitlines() if line.strip())


async def send_rows(request: PageRequest, rows: RowStream) -> None:
    """Send rows until the browser leaves, the gateway shuts down, or an hour has passed."""
    stream = PageStream(request)
    with request.gateway.viewers.enter(request.key.tenant) as over:
        await stream.start()
        with suppress(Gone, StreamOver):  # a page that is closed is no failure
            await request.exchange.attended(_send(stream, rows, over, request.gateway.clock), _no_beat)


async def _send(stream: PageStream, rows: RowStream, over: asyncio.Event, clock: Clock) -> None:
    await stream.write(b"retry: 1000\n\n")
    end, is_on = clock.monotonic() + _HOUR, True
    while is_on and clock.monotonic() < end:
        news = await rows.news()
        await (stream.write(news) if news else stream.rest())
        is_on = await passes(over, _PAUSE)
    await stream.end()


async def _no_beat() -> float:
    return _HOUR

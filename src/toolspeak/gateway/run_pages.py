"""The pages of runs: the list, and one run with its rounds, live while it runs (OBS-18).

A session sees the runs of its tenant only. Decisions on calls, cancelling and resuming go through the same store as
`/v1/runs`, by the same rules.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from toolspeak.dashboard.pages import render
from toolspeak.errors import BadField, RunsUnavailable, UnknownRun
from toolspeak.gateway.exchange import Gone, Refused
from toolspeak.gateway.page_request import Page, PageRequest
from toolspeak.gateway.page_stream import PAUSE, PageStream, StreamOver
from toolspeak.gateway.runs_api import DisabledRuns
from toolspeak.ir.failure import Failure, FailureKind

if TYPE_CHECKING:  # runs take long to import: a gateway without them never does
    from toolspeak.agent.runs.runs import Runs
    from toolspeak.gateway.runs import RunsEndpoints

_LISTED: Final = 100
_NANO: Final = 1e9


async def show_runs(request: PageRequest) -> Page:
    """Show all runs of the tenant, or the one whose name follows in the path."""
    endpoints = _endpoints(request)
    if endpoints is None:
        return request.page("runs_disabled.html", title="Runs")
    if len(request.path) > 1:
        template = "run_body.html" if request.is_fragment else "run.html"
        async with endpoints.opened() as runs:
            return await _show_run(request, runs, request.path[1], template)
    from toolspeak.dashboard.run_rows import run_row  # noqa: PLC0415 # as above

    async with endpoints.opened() as runs:
        lines = await runs.list(_LISTED, None, request.key.tenant)
    rows = [run_row(line, _now(request)) for line in lines]
    template = "runs_table.html" if request.is_fragment else "runs.html"
    return request.page(template, title="Runs", rows=rows, is_live=any(row.is_live for row in rows))


async def change_run(request: PageRequest) -> Page:
    """Cancel or resume a run, or decide on a call that waits."""
    endpoints, form, name = _endpoints(request), await request.form(), "/".join(request.path[1:])
    if endpoints is None:
        return request.page("runs_disabled.html", title="Runs")
    async with endpoints.opened() as runs:
        id, action = await runs.find(name, request.key.tenant), form.get("action", "")
        match action:
            case "approve" | "refuse":
                reason = form.get("reason", "").strip()
                await runs.approve(id, form.get("call", ""), allowed=action == "approve", reason=reason)
            case "cancel":
                await runs.cancel(id)
            case "resume":
                await endpoints.resume(runs, name, request.key)
            case _:
                raise BadField("action", f"{action[:40]!r} is not one of approve, refuse, cancel, resume")
    # The browser asks for the page anew: what it shows follows from the run, not from the click.
    return Page(b"", 303, b"text/plain", ((b"location", f"/ui/runs/{quote(name)}".encode()),))


async def stream_run(request: PageRequest) -> None:
    """Send the parts of a run's page that change, until it ends."""
    endpoints = _endpoints(request)
    if endpoints is None:
        raise Refused(Failure(FailureKind.NOT_FOUND, "runs are not offered here", 404))
    async with endpoints.opened() as runs:
        id = await runs.find("/".join(request.path[1:]), request.key.tenant)
        with request.gateway.viewers.enter(request.key.tenant) as over:
            stream = PageStream(request)
            news = _RunNews(request, runs, id, stream, over)
            await stream.start()
            # From here on an error ends the stream; the browser connects again and gets it as a page. A page that is
            # closed is no failure.
            with suppress(Gone, StreamOver, RunsUnavailable, UnknownRun):
                await request.exchange.attended(news.follow(), news.beat)
                await news.end()
            await stream.end()


class _RunNews:
    """Turns the events of a run into parts of its page, for one viewer."""

    def __init__(self, request: PageRequest, runs: "Runs", id: str, stream: PageStream, over: asyncio.Event) -> None:
        from toolspeak.dashboard.run_rows import LiveRounds  # noqa: PLC0415 # as above

        self._request: Final = request
        self._runs: Final = runs
        self._id: Final = id
        self._stream: Final = stream
        self._over: Final = over
        self._rounds: Final = LiveRounds()

    async def follow(self) -> None:
        """Take the events until the run has ended. A resumed run goes on after an end."""
        after = -1
        while True:
            async for each in self._runs.events(self._id, after):
                self._rounds.take(each.event)
                after = each.number
            if (await self._runs.show(self._id)).line.ended:
                return

    async def beat(self) -> float:
        """Send what has changed; return in how many seconds to look again."""
        if self._over.is_set():
            raise StreamOver
        has_new_state, self._rounds.has_new_state = self._rounds.has_new_state, False
        parts = [render("run_round.html", round=one) for one in self._rounds.changed()]
        if has_new_state:
            parts.append((await self._page("run_head.html")).body)
        await (self._stream.send(*parts) if parts else self._stream.rest())
        return PAUSE

    async def end(self) -> None:
        """Send the page as it is kept, and that nothing more will come."""
        await self._stream.send((await self._page("run_body.html")).body)
        await self._stream.send(b"ended", name="over")

    async def _page(self, template: str) -> Page:
        return await _show_run(self._request, self._runs, self._request.path[1], template)


async def _show_run(request: PageRequest, runs: "Runs", name: str, template: str) -> Page:
    from toolspeak.dashboard.run_rows import run_page  # noqa: PLC0415 # as above

    view = await runs.show(await runs.find(name, request.key.tenant))
    return request.page(template, title=f"Run {name}", run=run_page(view, _now(request)))


def _endpoints(request: PageRequest) -> "RunsEndpoints | None":
    """Return what has the runs; None if the configuration offers none."""
    offered = request.gateway.runs
    if isinstance(offered, DisabledRuns):
        return None
    from toolspeak.gateway.runs import RunsEndpoints  # noqa: PLC0415 # as above

    return offered if isinstance(offered, RunsEndpoints) else None


def _now(request: PageRequest) -> float:
    return request.gateway.clock.nanoseconds() / _NANO

"""Looks at the upstreams in the background, and says which of them do not answer and what to start (OBS-8).

    GET /live     200 while the process runs: for a supervisor, which restarts it otherwise; `/health` is the same
    GET /ready    200 while at least one upstream answers and the gateway does not drain, else 503: for a load balancer,
                  which sends clients elsewhere

The start does not wait for upstreams: one that is down must not keep the gateway from serving the others. A silent one
is asked again every ten seconds until it answers. Each change is one line in the log.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from toolspeak import upstreams
from toolspeak.config.addresses import is_near
from toolspeak.config.shape import Config, Upstream
from toolspeak.gateway.access_log import safe_words
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory, UpstreamState

_LOG: Final = logging.getLogger(__name__)
_QUIET: Final = 0.3
"""Seconds after the start before anything is logged: the addresses of the gateway are printed first."""
RECHECK: Final = 10.0
"""Seconds between two looks at upstreams that do not answer."""
_UP: Final = "toolspeak up MODEL.gguf"


class Readiness:
    """Knows which upstreams answer."""

    def __init__(self, config: Config, directory: Directory, clock: Clock) -> None:
        """Take the upstreams; `start` begins to look."""
        self._upstreams: Mapping[str, Upstream] = {each.name: each for each in config.upstreams}
        self._directory: Final = directory
        self._clock: Final = clock
        self._silent: Final[set[str]] = set()
        """Upstreams that the log has named as silent."""
        self._task: asyncio.Task[None] | None = None
        self.is_draining = False
        """The gateway ends soon: it takes no new clients."""

    def start(self) -> None:
        """Begin to look; needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def change(self, config: Config) -> None:
        """Look at the upstreams of a new configuration, at once."""
        self._upstreams = {each.name: each for each in config.upstreams}
        self._silent.clear()
        if self._task is not None:
            self._task.cancel()
            self.start()

    async def stop(self) -> None:
        """End looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def report(self, *, with_reasons: bool) -> tuple[bool, JsonObject]:
        """Return whether clients are welcome, and the body of `GET /ready`. It asks upstreams whose state is old.

        Without `with_reasons` the body names no upstream: clients without a key must not learn where requests go.
        """
        states = await self._directory.look()
        answering = sum(state.answers for state in states)
        is_ready = answering > 0 and not self.is_draining
        body: JsonObject = {
            "status": "draining" if self.is_draining else "ready" if is_ready else "unavailable",
            "answering": answering,
            "upstreams": len(states),
        }
        if with_reasons:
            body["reasons"] = {state.name: self._reason(state) for state in states if not state.answers}
        return is_ready, body

    async def _watch(self) -> None:
        while True:
            states = await self._directory.look()
            await self._clock.sleep(_QUIET)
            for state in states:
                self._tell(state)
            await self._clock.sleep(RECHECK)
            while not self._silent:  # nothing to recheck; a request may find out that one has gone
                await self._clock.sleep(RECHECK)
                self._silent.update(state.name for state in self._directory.states() if not state.answers)

    def _tell(self, state: UpstreamState) -> None:
        if state.answers and state.name in self._silent:
            self._silent.discard(state.name)
            _LOG.info("upstream %s answers again", state.name)
        elif not state.answers and state.name not in self._silent:
            self._silent.add(state.name)
            _LOG.warning("upstream %s does not answer: %s", state.name, self._reason(state))
        elif state.failure is not None and state.failure.kind.denies_access and state.name not in self._silent:
            _LOG.warning("upstream %s refuses its key (%d)", state.name, state.failure.status)

    def _reason(self, state: UpstreamState) -> str:
        failure = state.failure
        if failure is None:
            return "it has not been asked yet"
        return f"{_words(failure)}. {start_hint(self._upstreams[state.name])}"


def start_hint(upstream: Upstream) -> str:
    """Return what a person can do about an upstream that does not answer."""
    if not is_near(upstream.url):
        return f"Check {upstream.url}, the network, and the proxy settings."
    preset = upstreams.load(upstream.preset or "compatible")
    own = f"Start it ({preset.start})" if preset.start else f"Start the model server at {upstream.url}"
    return f"{own}, or run a model here: {_UP}"


def _words(failure: Failure) -> str:
    """Return the failure in our own words: a page of the server may quote anything."""
    if failure.kind is FailureKind.TRANSIENT:
        return f"it is not ready (status {failure.status})"
    return safe_words(failure.message)

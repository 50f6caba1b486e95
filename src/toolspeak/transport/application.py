"""The gateway's ASGI application inside this process: its configuration, its lifespan, and the calls that it answers.

It is the application that `toolspeak serve` runs. A server protects itself from its clients, and clients from each
other; here the only client is the program itself. `in_process` says which settings are different for that reason.
"""

import asyncio
import logging
import sys
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Final

from toolspeak.config.assemble import outbound_of
from toolspeak.config.shape import Config, DashboardSettings, Limits, Offer
from toolspeak.engine.verdict import Depth
from toolspeak.gateway.asgi import Asgi, AsgiMessage
from toolspeak.gateway.server import build
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.learned import OWNER
from toolspeak.transport.call import AppCall, CallBroken
from toolspeak.transport.caller_key import CALLER, Caller, CallerKeyTransport

_LAST_WORDS: Final = 3.0
"""Seconds that calls get to end after the client has left them, before they are cancelled."""


def in_process(config: Config) -> Config:
    """Return the configuration of an application whose only client is the program that runs it.

    - No keys for clients, no dashboard, no `/v1/runs`: no other program can reach the application.
    - No limits of memory, delay and concurrency. The process is not ours alone: a program that has loaded a model of
      its own uses more than `limits.memory_bytes`, and one that computes in its event loop is late.
    - Traces only if they go to a file, where `toolspeak trace` finds them; the program cannot ask for those in memory.
    - Probes only look, unless the configuration says otherwise: a full probe takes up to fifteen requests, and a
      program of one request would pay for them and throw the result away.
    """
    most = sys.maxsize
    limits = Limits(
        body_bytes=config.limits.body_bytes,
        request=config.limits.request,
        concurrent=most,
        memory_bytes=most,
        buffered_bytes=most,
        loop_delay_seconds=inf,
    )
    return replace(
        config,
        server=replace(config.server, probe=config.server.probe or Depth.LOOK),
        limits=limits,
        keys=(),
        dashboard=DashboardSettings(enabled=False),
        offer=Offer(enabled=False),
        traces=replace(config.traces, enabled=config.traces.enabled and bool(config.traces.database)),
    )


class Application:
    """The application of one transport. All methods but `is_running` belong to one event loop."""

    def __init__(self, config: Config) -> None:
        """Take the user's configuration; `start` builds the application."""
        self._config: Final = in_process(config)
        self._app: Asgi | None = None
        self._starting: asyncio.Task[Asgi] | None = None
        self._lifespan: asyncio.Task[None] | None = None
        self._stop: Final = asyncio.Event()
        self._calls: Final[dict[asyncio.Task[None], AppCall]] = {}

    @property
    def is_running(self) -> bool:
        """Whether `start` has ended well. Any thread may ask."""
        return self._app is not None

    async def start(self, caller: Caller) -> None:
        """Start the application, once for all callers. Raises what the start raises; the next call tries again."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._started(caller))
        try:
            # A caller that is cancelled must not stop the start for the others.
            self._app = await asyncio.shield(self._starting)
        except Exception:
            self._starting = None
            raise

    def begin(self, call: AppCall) -> None:
        """Answer a call, in a task of its own; `start` comes first."""
        task = asyncio.get_running_loop().create_task(self._serve(call))
        self._calls[task] = call
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._calls.pop(task).finished(task)

    async def _serve(self, call: AppCall) -> None:
        CALLER.set(call.request.caller)
        assert self._app is not None  # noqa: S101 # `start` comes first
        await self._app(call.request.scope, call.receive, call.send)

    async def close(self) -> None:
        """End all calls, then the application, with its probes and its connections."""
        for call in self._calls.values():
            call.end(CallBroken("the client was closed while the response was read"))
            call.leave()
        if self._calls:
            _, late = await asyncio.wait([*self._calls], timeout=_LAST_WORDS)
            for task in late:
                task.cancel()
        if self._starting is not None:
            with suppress(Exception):  # the callers of `start` have got it
                await self._starting
        self._stop.set()
        if self._lifespan is not None:
            await asyncio.wait((self._lifespan,))

    def end(self) -> None:
        """Begin to end the application, without waiting for it; there are no calls left."""
        self._stop.set()

    async def _started(self, caller: Caller) -> Asgi:
        # Probes and looks at the upstreams that the start begins inherit the context of this task, and so the key.
        CALLER.set(caller)
        app = await asyncio.to_thread(self._build)
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        self._lifespan = loop.create_task(self._live(app, started))
        await asyncio.wait((self._lifespan, started), return_when=asyncio.FIRST_COMPLETED)
        if self._lifespan.done():
            self._lifespan.result()
        return app

    def _build(self) -> Asgi:
        # As libraries do: records go to the program's handlers, and without any not to stderr.
        logging.getLogger("toolspeak").addHandler(logging.NullHandler())
        upstreams = CallerKeyTransport(HttpTransport(outbound_of(self._config)), self._config.upstreams)
        return build(self._config, transport=upstreams, quorum=OWNER)

    async def _live(self, app: Asgi, started: "asyncio.Future[None]") -> None:
        """Run the application's lifespan until `close`, or until the event loop ends."""
        messages = iter(("lifespan.startup", "lifespan.shutdown"))

        async def receive() -> AsgiMessage:
            kind = next(messages)
            if kind == "lifespan.shutdown":
                # `asyncio.run` cancels the tasks that are left when the program's main task has ended. The application
                # then closes its connections in order, as if the client had been closed.
                with suppress(asyncio.CancelledError):
                    await self._stop.wait()
            return {"type": kind}

        async def send(message: AsgiMessage) -> None:
            if message["type"] == "lifespan.startup.complete":
                started.set_result(None)

        await app({"type": "lifespan"}, receive, send)

"""Runs several models, and loads each when a request needs it.

    with ModelPool([PooledModel("a", command, 4142), …], most=1, idle=600) as pool:
        transport = SwitchingTransport(HttpTransport(), pool)

`switch.py` decides, the pool acts: each loaded model has a `Supervisor`, which keeps it running as it does one alone.
The transport knows a model by its port. Each answer holds its model until it is closed.

All decisions are made in the event loop of the gateway, so they need no lock. A task waits for a model to load, another
one for its process to end. If the pool is left, or killed, no process stays: see `Child` and `tether.py`.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import isinf
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import msgspec

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.local.supervisor import PACE, Pace, RestartAwareTransport, ServerState, Supervisor
from toolspeak.local.switch import Grant, Load, Place, Refuse, Switch, SwitchAction, Unload
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.transport import (
    DEFAULT_TIMEOUTS,
    IN_BACKGROUND,
    Headers,
    Response,
    Timeouts,
    TransportError,
    UpstreamTransport,
)

_LOG: Final = logging.getLogger(__name__)
_LOOK: Final = 0.05
"""Seconds between two looks at a model that loads."""
_LATER: Final = 5.0
"""Seconds after which a client may try again."""
_MODELS: Final = "/v1/models"
_LAST_LINES: Final = 3
"""Lines of a server's output that a client is told if its model cannot be loaded."""


@dataclass(frozen=True, slots=True)
class PooledModel:
    """A model that may be loaded: the command that serves it, and the port of loopback on which it does."""

    name: str
    command: Sequence[str]
    port: int


class _Ticket:
    """One request: `granted` is done when its model is loaded."""

    def __init__(self) -> None:
        self.granted: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()


class ModelPool:
    """The models, of which at most `most` are loaded at one time."""

    def __init__(
        self, models: Iterable[PooledModel], most: int, idle: float, pace: Pace = PACE, clock: Clock = CLOCK
    ) -> None:
        """Load nothing yet. A model without requests is unloaded after `idle` seconds; 0 means never."""
        self._models: Final = {model.name: model for model in models}
        self._switch: Final = Switch(self._models, most, idle)
        self._pace: Final = pace
        self._clock: Final = clock
        self._keepers: Final[dict[str, Supervisor]] = {}
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all servers at the same time: each may take seconds."""
        self._is_closed = True
        keepers = list(self._keepers.values())
        if keepers:
            with ThreadPoolExecutor(len(keepers)) as threads:
                list(threads.map(Supervisor.stop, keepers))

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of the model at each port."""
        return {model.port: model.name for model in self._models.values()}

    def place(self, name: str) -> Place:
        """Return whether a model is loaded."""
        return self._switch.place(name)

    # ---------------------------------------------------------------- requests

    async def acquire(self, name: str, ticket: _Ticket, seconds: float) -> Supervisor:
        """Wait until a model is loaded, but at most this long, and return what keeps it. Raises `TransportError`.

        The caller must call `release` afterwards, also after an error or a cancellation.
        """
        self._act(self._switch.ask(name, ticket, self._clock.monotonic()))
        try:
            async with asyncio.timeout(seconds):
                await ticket.granted
        except TimeoutError:
            raise _unavailable(
                f"the model {name} was not loaded within {seconds:g} s: others are in use. Try again later"
            ) from None
        return self._keeper(name)

    def acquire_if_loaded(self, name: str, ticket: _Ticket) -> Supervisor:
        """Take a model for a request that no client waits for. Raises `TransportError` if it is not loaded."""
        if not self._switch.ask_if_loaded(name, ticket):
            raise _unavailable(f"the model {name} is not loaded")
        return self._keeper(name)

    def _keeper(self, name: str) -> Supervisor:
        found = self._keepers.get(name)
        if found is None:  # it was given up in the moment between the grant and now
            raise _unavailable(f"the model {name} is lost: try again soon")
        return found

    def release(self, name: str, ticket: _Ticket, *, counts: bool = True) -> None:
        """Note that a request has ended, or is not waiting any more."""
        self._act(self._switch.done(name, ticket, self._clock.monotonic(), counts=counts))

    async def close(self) -> None:
        """Stop to act, before the event loop ends. Servers end when the pool is left."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # ---------------------------------------------------------------- acting

    def _act(self, actions: Iterable[SwitchAction]) -> None:
        for action in actions:
            match action:
                case Grant(_Ticket() as ticket):
                    if not ticket.granted.done():
                        ticket.granted.set_result(None)
                case Refuse(_Ticket() as ticket, why):
                    if not ticket.granted.done():
                        ticket.granted.set_exception(_unavailable(why))
                case Load(name):
                    self._begin(self._load(name))
                case Unload(name, why):
                    self._begin(self._unload(name, why))
                case _:
                    raise AssertionError
        self._set_timer()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        if self._is_closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _set_timer(self) -> None:
        """Wake up when the next model has been idle for long enough."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._switch.due()
        if not isinf(due) and not self._is_closed:
            delay = max(0.0, due - self._clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._act(self._switch.tick(self._clock.monotonic()))

    async def _load(self, name: str) -> None:
        model, loop, began = self._models[name], asyncio.get_running_loop(), self._clock.monotonic()

        def lost(why: str) -> None:  # in the thread of the supervisor
            if not loop.is_closed():
                loop.call_soon_threadsafe(partial(self._lost, name, keeper, why))

        _LOG.info("loading the model %s", name)
        keeper = Supervisor(model.command, model.port, lost, self._pace, self._clock)
        self._keepers[name] = keeper
        keeper.__enter__()
        while keeper.state is ServerState.LOADING:
            await self._clock.sleep(_LOOK)
        now = self._clock.monotonic()
        if keeper.state is ServerState.LOST:
            why = _printable(" · ".join([keeper.why, *keeper.last_lines[-_LAST_LINES:]]))
            _LOG.warning("the model %s cannot be loaded: %s", name, why)
            await self._end(name, keeper)
            self._act(self._switch.has_failed(name, f"the model {name} cannot be loaded: {why}", now))
        else:
            _LOG.info("loaded the model %s in %.1f s", name, now - began)
            self._act(self._switch.has_loaded(name, now))

    def _lost(self, name: str, keeper: Supervisor, why: str) -> None:
        """Note that a model that was loaded is given up: its server failed too often."""
        if self._keepers.get(name) is not keeper or self._switch.place(name) is not Place.LOADED:
            return  # it is being unloaded anyway
        _LOG.error("the model %s is given up: %s", name, why)
        del self._keepers[name]
        self._act(self._switch.has_failed(name, f"the model {name} is given up: {why}", self._clock.monotonic()))

    async def _unload(self, name: str, why: str) -> None:
        keeper = self._keepers[name]
        _LOG.info("unloading the model %s: %s", name, why)
        await self._end(name, keeper)
        self._act(self._switch.has_unloaded(name, self._clock.monotonic()))

    async def _end(self, name: str, keeper: Supervisor) -> None:
        # In a thread, because it waits for the end of the process. A shutdown must not forget a process that is ending.
        await asyncio.shield(asyncio.to_thread(keeper.stop))
        self._keepers.pop(name, None)


def _unavailable(message: str) -> TransportError:
    return TransportError(Failure(FailureKind.TRANSIENT, message, 503, retry_after=_LATER))


def _printable(text: str) -> str:
    """Return a text of a server without characters that control a terminal: it goes to the log."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


# ---------------------------------------------------------------- requests


class SwitchingTransport:
    """A transport to the models of a pool: a POST loads its model and waits for it, a GET never does (UP-5)."""

    def __init__(self, inner: UpstreamTransport, pool: ModelPool) -> None:
        """Send through another transport."""
        self._inner: Final = inner
        self._pool: Final = pool
        self._names: Final = pool.names

    def model_state(self, url: str) -> str:
        """Return the state of the model at a base URL; empty if it is not one of the pool."""
        name = self._name(url)
        return self._pool.place(name).value if name else ""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and wait for the headers. Raises `TransportError`, also if the model cannot be loaded."""
        name = self._name(url)
        if name is None:
            return await self._inner.send(method, url, headers, body, timeouts)
        if method == "GET" and urlsplit(url).path == _MODELS:
            return _Listing(name)
        is_waited_for = method != "GET" and not IN_BACKGROUND.get()
        ticket = _Ticket()
        try:
            if is_waited_for:
                keeper = await self._pool.acquire(name, ticket, timeouts.total)
            else:
                keeper = self._pool.acquire_if_loaded(name, ticket)
            inner = RestartAwareTransport(self._inner, keeper)
            response = await inner.send(method, url, headers, body, timeouts)
        except BaseException:
            self._pool.release(name, ticket, counts=is_waited_for)
            raise
        return _Held(response, partial(self._pool.release, name, ticket, counts=is_waited_for))

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()
        await self._inner.close()

    def _name(self, url: str) -> str | None:
        return self._names.get(urlsplit(url).port or 0)


class _Held:
    """A response that holds its model until it is closed."""

    def __init__(self, inner: Response, release: "partial[None]") -> None:
        self._inner: Final = inner
        self._release: partial[None] | None = release

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    def close(self) -> None:
        self._inner.close()
        self._let_go()

    def end(self) -> None:
        self._inner.end()
        self._let_go()

    def _let_go(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


class _Listing:
    """The list of models of a server that need not run for it."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, name: str) -> None:
        self._body = msgspec.json.encode({"object": "list", "data": [{"id": name, "owned_by": "llamacpp"}]})

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def end(self) -> None:
        """Do nothing: there is no connection."""

"""Keeps a model server running.

    with Supervisor(command, port) as server:   started, and stopped at the end, with everything that it has started
        server.wait(0.5)                        loading, up, restarting, lost

One thread owns the process: it starts it, requests its health, and starts it again after it has died or hung. A server
that has never been healthy is given up at once, and so is one that dies or hangs again and again soon after its start.

A hung server (stopped by a signal, deadlocked, stuck on a dead GPU driver) keeps its socket open: the kernel accepts
connections for it, and every request waits until its own timeout. So `/health` is requested at an interval. A missed
answer alone proves nothing. llama.cpp answers `/health` from the same pool of HTTP threads that holds open streams, so
a saturated server that works well may not answer for minutes. Two more signs of life therefore count: bytes that
arrived for a client, and CPU time that the process has used since the last look. A server without any sign of life is
restarted after a few missed answers; one that only uses CPU time gets `busy` seconds.
"""

import http.client
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from threading import Condition, Event, Thread
from types import TracebackType
from typing import Final, Self

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.local.program import HOST
from toolspeak.local.server_process import Child
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Response, Timeouts, Transport, TransportError

_TICKS_OF_WORK: Final = 5
"""CPU ticks (usually 10 ms each) between two looks that count as work. An idle server's timers use none or one."""
_USER, _SYSTEM = 11, 12
"""Fields of /proc/PID/stat, counted after the name of the program."""


@dataclass(frozen=True, slots=True)
class HealthInterval:
    """How a running server is watched; times are in seconds."""

    every: float = 3.0
    """Between two requests to `/health`."""
    answer: float = 5.0
    """How long one request may take."""
    misses: int = 3
    """Requests in a row without an answer, while no CPU time is used, after which the server counts as hung."""
    busy: float = 900.0
    """How long a server that uses CPU time may go without an answer or a byte for a client."""


class Heartbeat:
    """Watches one process; `beat` once per interval."""

    def __init__(self, pid: int, answers: Callable[[], bool], rhythm: HealthInterval, clock: Clock) -> None:
        """Begin with a server that has just answered; `answers` requests `/health` and waits for it."""
        self._pid: Final = pid
        self._answers: Final = answers
        self._rhythm: Final = rhythm
        self._clock: Final = clock
        self._misses = 0
        self._ticks = cpu_ticks(pid)
        self._last_sign = clock.monotonic()

    @property
    def last_sign(self) -> float:
        """Return when the server last showed that it works (monotonic seconds)."""
        return self._last_sign

    def note(self) -> None:
        """Count bytes that arrived from the server as a sign of life; any thread may call it."""
        self._last_sign = self._clock.monotonic()

    def beat(self) -> str:
        """Request `/health` once; return why the server counts as hung, or nothing."""
        asked = self._clock.monotonic()
        if self._answers():
            self.note()
        ticks, before = cpu_ticks(self._pid), self._ticks
        self._ticks = ticks
        if self._last_sign >= asked:
            self._misses = 0
            return ""
        if ticks is not None and before is not None and ticks - before >= _TICKS_OF_WORK:
            self._misses = 0
            silent = self._clock.monotonic() - self._last_sign
            return "" if silent < self._rhythm.busy else f"it computed for {silent:.0f} s without any answer"
        self._misses += 1
        if self._misses < self._rhythm.misses:
            return ""
        return f"it hung: {self._misses} requests to /health in a row got no answer in {self._rhythm.answer:g} s"


def cpu_ticks(pid: int) -> int | None:
    """Return the CPU time that a process and all its threads have used; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return int(fields[_USER]) + int(fields[_SYSTEM])
    except (OSError, ValueError, IndexError):
        return None


# ---------------------------------------------------------------- the supervisor


_LOG: Final = logging.getLogger(__name__)
_OK: Final = 200


class ServerState(StrEnum):
    """The state of the server."""

    LOADING = "loading"
    """For the first time."""
    UP = "up"
    RESTARTING = "restarting"
    LOST = "lost"
    """It is given up."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long everything may take, in seconds."""

    start: float = 900.0
    """Until it is healthy: large models come from slow disks."""
    stop: float = 5.0
    """From the request to end until it is killed."""
    look: float = 0.1
    first_pause: float = 0.5
    longest_pause: float = 30.0
    steady: float = 60.0
    """What dies later than that did not die of its start."""
    deaths: int = 5
    """Quick ones in a row, after which it is given up."""
    rhythm: HealthInterval = field(default_factory=HealthInterval)
    """How it is watched once it is up."""


PACE: Final = Pace()


def ignore_failure(why: str) -> None:
    """Hear that a server was given up, where nobody wants to know."""
    del why


class Supervisor:
    """Runs a command that serves a model on a port of loopback."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        lost: Callable[[str], None] = ignore_failure,
        pace: Pace = PACE,
        clock: Clock = CLOCK,
    ) -> None:
        """Start nothing yet; `lost` is told, once, in the keeper's thread, why a server that was up is given up."""
        self._command: Final = command
        self._port: Final = port
        self._lost: Final = lost
        self._pace: Final = pace
        self._clock: Final = clock
        self._changed: Final = Condition()
        self._stopping: Final = Event()
        self._thread: Final = Thread(target=self._keep, name="llama-keeper", daemon=True)
        self._child: Child | None = None
        self._heartbeat: Heartbeat | None = None
        self.state = ServerState.LOADING
        self.why = ""
        """Why it is lost."""
        self.last_lines: list[str] = []
        """What it said before it died."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Return the server's process; 0 while there is none."""
        child = self._child
        return child.pid if child is not None and child.lives else 0

    def wait(self, seconds: float) -> ServerState:
        """Wait until it is up, or lost, but not longer than that."""
        with self._changed:
            self._changed.wait_for(lambda: self.state not in (ServerState.LOADING, ServerState.RESTARTING), seconds)
        return self.state

    def note_bytes(self) -> None:
        """Count bytes that arrived from the server as a sign of life; any thread may call it."""
        if (heartbeat := self._heartbeat) is not None:
            heartbeat.note()

    def stop(self) -> None:
        """End the server, and all that it has started: in order if it can, else by force."""
        with self._changed:  # from here on nothing is started
            self._stopping.set()
        if (child := self._child) is not None:
            child.ask_to_end()
            self._thread.join(self._pace.stop)
            child.kill()
        self._thread.join()
        self._turn(ServerState.STOPPED)

    def _keep(self) -> None:
        deaths, has_been_up = 0, False
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            why, was_up = self._lived()
            has_been_up |= was_up
            # The seconds in which a hung server was still being watched do not count as a good life: else one that
            # hangs at once after each start would be restarted for ever.
            ended = self._heartbeat.last_sign if was_up and self._heartbeat is not None else self._clock.monotonic()
            lived = ended - began
            deaths = 1 if was_up and lived >= self._pace.steady else deaths + 1
            if not self._stopping.is_set() and (not has_been_up or deaths >= self._pace.deaths):
                self._give_up(why, deaths, has_been_up=has_been_up)
                return
            self._pause(why, lived, deaths)

    def _lived(self) -> tuple[str, bool]:
        """Let it live once; return what it died of, and whether it was up before."""
        try:
            child = self._started()
        except OSError as error:
            return f"{self._command[0]}: {error.strerror}", False
        if child is None:
            return "", False
        why, was_up = "", self._becomes_healthy(child)
        if was_up:
            why = self._watched(child)
        elif child.lives and not self._stopping.is_set():
            why = f"it was not ready after {self._pace.start:g} seconds"
        if why:
            child.kill()
        child.wait()
        if was_up:
            self._turn(ServerState.RESTARTING)
        cause, self.last_lines = child.buried()
        return why or cause, was_up

    def _watched(self, child: Child) -> str:
        """Watch a server that is up until it dies or hangs; return why it counts as hung."""
        heartbeat = Heartbeat(child.pid, lambda: self._health() is not None, self._pace.rhythm, self._clock)
        self._heartbeat = heartbeat
        self._turn(ServerState.UP)
        while not child.ends_within(self._pace.rhythm.every):
            if self._stopping.is_set():
                return ""  # `stop` ends it, and must not be overtaken by a verdict
            if (why := heartbeat.beat()) and child.lives:
                return why
        heartbeat.note()  # it lived until now
        return ""

    def _started(self) -> Child | None:
        with self._changed:
            if self._stopping.is_set():
                return None
            self._child = Child(self._command)
        return self._child

    def _becomes_healthy(self, child: Child) -> bool:
        """Ask until it is healthy, dead, or too late."""
        until = self._clock.monotonic() + self._pace.start
        while child.lives and self._clock.monotonic() < until:
            if self._health() == _OK and child.lives:
                return True
            if self._stopping.wait(self._pace.look):
                return False
        return False

    def _health(self) -> int | None:
        """Return the status of `/health`; None if there is no answer in time. A new connection each time."""
        connection = http.client.HTTPConnection(HOST, self._port, timeout=self._pace.rhythm.answer)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _pause(self, why: str, lived: float, deaths: int) -> None:
        if self._stopping.is_set():
            return
        pause = min(self._pace.first_pause * 2.0 ** (deaths - 1), self._pace.longest_pause)
        _LOG.warning("the model's server failed after %.0f s (%s); it is started again in %g s", lived, why, pause)
        self._stopping.wait(pause)

    def _give_up(self, why: str, deaths: int, *, has_been_up: bool) -> None:
        how = f"failed {deaths} times soon after its start" if has_been_up else "did not start"
        self.why = f"the model's server {how}: {why}"
        self._turn(ServerState.LOST)
        if has_been_up:
            self._lost(self.why)

    def _turn(self, state: ServerState) -> None:
        with self._changed:
            self.state = state
            self._changed.notify_all()


# ---------------------------------------------------------------- requests while it restarts


PATIENCE: Final = 10.0
"""Seconds that a request waits; most models are back by then."""
_STEP: Final = 0.05
_AGAIN: Final = 5.0


class RestartAwareTransport:
    """A transport to a server that is kept."""

    def __init__(self, inner: Transport, keeper: Supervisor, patience: float = PATIENCE, clock: Clock = CLOCK) -> None:
        """Send by another transport, once the server is up."""
        self._inner: Final = inner
        self._keeper: Final = keeper
        self._patience: Final = patience
        self._clock: Final = clock

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send one, and wait until the answer's headers are there."""
        until = self._clock.monotonic() + min(self._patience, timeouts.first_byte)
        while self._keeper.state is not ServerState.UP:
            if self._keeper.state is not ServerState.RESTARTING or self._clock.monotonic() >= until:
                raise TransportError(_failure(self._keeper.state))
            await self._clock.sleep(_STEP)
        response = await self._inner.send(method, url, headers, body, timeouts)
        self._keeper.note_bytes()
        return _Noted(response, self._keeper)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()


class _Noted:
    """A reply whose bytes count as a sign of life of its server: a saturated one may not answer `/health`."""

    def __init__(self, inner: Response, keeper: Supervisor) -> None:
        self._inner: Final = inner
        self._keeper: Final = keeper

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        data = await self._inner.read()
        self._keeper.note_bytes()
        return data

    def close(self) -> None:
        self._inner.close()

    def end(self) -> None:
        self._inner.end()


def _failure(state: ServerState) -> Failure:
    message = f"the model's server is {state}: it failed, and is loading again; try again soon"
    if state is not ServerState.RESTARTING:
        message = f"the model's server is {state}"
    return Failure(FailureKind.TRANSIENT, message, 503, retry_after=_AGAIN)

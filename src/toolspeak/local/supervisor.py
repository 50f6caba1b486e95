"""Keeps a model server running.

    with Supervisor(command, port) as server:   starts it, and stops it at the end, with every process that it started
        server.wait(0.5)                        loading, up, restarting, lost

One thread owns the process: it starts it, requests its health, and restarts it after a crash or a hang. A server that
has never been healthy is given up at once. So is one that repeatedly dies or hangs soon after its start.

A hung server (stopped by a signal, deadlocked, stuck on a dead GPU driver) keeps its socket open: the kernel accepts
connections for it, and every request waits until its own timeout. So `/health` is requested at an interval. A missed
answer alone proves nothing: llama.cpp answers `/health` from the same pool of HTTP threads that holds open streams, so
a saturated server that works well may not answer for minutes. Two more signs of life therefore count: bytes that
arrived for a client, and CPU time that the process has used since the last check. A server without any sign of life is
restarted after a few missed answers; one that only uses CPU time gets `busy` seconds.

`Child` is in a process group of its own, tied to ours. Its output is read all the time, because a full pipe
would block it; the last lines are kept.
"""

import http.client
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from subprocess import Popen
from threading import Condition, Event, Thread
from types import TracebackType
from typing import IO, Final, Self

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.local.program import HOST
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.tether import tethered
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Response, Timeouts, TransportError, UpstreamTransport

_KEPT: Final = 16_384
_READ: Final = 65_536
_SOON: Final = 1.0


class Tail:
    """Reads a process's output to its end in a thread, and keeps the last bytes."""

    def __init__(self, process: Popen[bytes]) -> None:
        """Start to read. The process must have an unbuffered pipe as its output."""
        if process.stdout is None:
            raise ValueError("the process has no pipe for its output")
        self._kept = b""
        self._thread: Final = Thread(target=self._drain, args=(process.stdout,), name="llama-output", daemon=True)
        self._thread.start()

    def lines(self, count: int) -> list[str]:
        """Return the last lines that are not blank."""
        kept = self._kept.decode(errors="replace").splitlines()
        return [line for line in kept if line.strip()][-count:]

    def end(self) -> None:
        """Wait for the rest of the output of a process that has ended."""
        self._thread.join(_SOON)

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := pipe.read(_READ):
                self._kept = (self._kept + chunk)[-_KEPT:]


_LAST_LINES: Final = 12
_IS_WINDOWS: Final = sys.platform == "win32"


class Child:
    """A started process. Its input is a pipe that closes when we exit. The end of its output is kept."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it in another process group, since Ctrl-C is meant for us. Raises `OSError` without such a program."""
        self._process: Final = subprocess.Popen(  # noqa: S603 # the user's own program
            tethered(command),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=None if _IS_WINDOWS else 0,
        )
        self._tail: Final = Tail(self._process)
        self.pid: Final = self._process.pid

    @property
    def lives(self) -> bool:
        """Return whether it has not ended yet."""
        return self._process.poll() is None

    def ask_to_end(self) -> None:
        """Ask its group to end (SIGTERM)."""
        if self.lives:
            self._signal(hard=False)

    def kill(self) -> None:
        """Kill its group (SIGKILL)."""
        if self.lives:
            self._signal(hard=True)

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()

    def ends_within(self, seconds: float) -> bool:
        """Wait at most this long; return whether it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def buried(self) -> tuple[str, list[str]]:
        """Wait for its end, and kill the rest of its group. Return the cause of its end, and its last lines."""
        status = self._process.wait()
        # Helpers of the server are in its group. They must not outlive it, and would keep the output pipe open.
        self._signal(hard=True)
        self._tail.end()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return _cause(status), self._tail.lines(_LAST_LINES)

    def _signal(self, *, hard: bool) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self.pid, signal.SIGKILL if hard else signal.SIGTERM)


def _cause(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status}"
    name = next((each.name for each in signal.Signals if each.value == -status), str(-status))
    return f"it was ended by {name}"


_TICKS_OF_WORK: Final = 5
"""CPU ticks (usually 10 ms each) between two checks that count as work. An idle server's timers use none or one."""
_USER, _SYSTEM = 11, 12
"""Indexes of fields of /proc/PID/stat, counted after the program's name, which may contain spaces."""


@dataclass(frozen=True, slots=True)
class HealthInterval:
    """How a running server is watched. Times are in seconds."""

    every: float = 3.0
    """Time between two requests to `/health`."""
    answer: float = 5.0
    """Timeout of one request."""
    misses: int = 3
    """Consecutive missed answers without CPU use after which the server counts as hung."""
    busy: float = 900.0
    """How long a server that uses CPU time may go without an answer or a byte for a client."""


class Heartbeat:
    """Watches one process. Call `beat` once per interval."""

    def __init__(self, pid: int, answers: Callable[[], bool], rhythm: HealthInterval, clock: Clock) -> None:
        """Begin with a server that has just answered. `answers` requests `/health` and returns whether it answered."""
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
        """Record bytes from the server as a sign of life. Any thread may call it."""
        self._last_sign = self._clock.monotonic()

    def beat(self) -> str:
        """Request `/health` once. Return the reason if the server counts as hung, else an empty string."""
        asked = self._clock.monotonic()
        if self._answers():
            self.note()
        ticks, before = cpu_ticks(self._pid), self._ticks
        self._ticks = ticks
        # Compared with the time of the request: bytes for a client that came meanwhile count like an answer.
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
    """Return the CPU time of a process with all its threads; None where the system does not report it."""
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
    """It is starting for the first time."""
    UP = "up"
    RESTARTING = "restarting"
    LOST = "lost"
    """It was given up."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Pace:
    """Timeouts and pauses, in seconds."""

    start: float = 900.0
    """From start to healthy: large models are loaded from slow disks."""
    stop: float = 5.0
    """From SIGTERM to SIGKILL."""
    look: float = 0.1
    first_pause: float = 0.5
    longest_pause: float = 30.0
    steady: float = 60.0
    """A server that dies later than this did not die of its start."""
    deaths: int = 5
    """Quick deaths in a row after which it is given up."""
    rhythm: HealthInterval = field(default_factory=HealthInterval)
    """How it is watched once it is up."""


PACE: Final = Pace()


def ignore_failure(why: str) -> None:
    """Ignore that a server was given up."""
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
        """Start nothing yet. `lost` is called once, in the supervisor's thread, if a server that was up is given up."""
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
        """Why the server was given up."""
        self.last_lines: list[str] = []
        """The last output of the server that died."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Return the server's process id; 0 while there is none."""
        child = self._child
        return child.pid if child is not None and child.lives else 0

    def wait(self, seconds: float) -> ServerState:
        """Wait until the server is up or given up, but at most this long. Return the state."""
        with self._changed:
            self._changed.wait_for(lambda: self.state not in (ServerState.LOADING, ServerState.RESTARTING), seconds)
        return self.state

    def note_bytes(self) -> None:
        """Record bytes from the server as a sign of life. Any thread may call it."""
        if (heartbeat := self._heartbeat) is not None:
            heartbeat.note()

    def stop(self) -> None:
        """End the server and every process that it started: by SIGTERM, then by SIGKILL."""
        with self._changed:  # `_started` checks the flag under the same lock: no process is started after this
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
            # The seconds in which a hung server was only watched do not count as uptime: otherwise a server that hangs
            # right after each start would be restarted for ever.
            ended = self._heartbeat.last_sign if was_up and self._heartbeat is not None else self._clock.monotonic()
            lived = ended - began
            deaths = 1 if was_up and lived >= self._pace.steady else deaths + 1
            if not self._stopping.is_set() and (not has_been_up or deaths >= self._pace.deaths):
                self._give_up(why, deaths, has_been_up=has_been_up)
                return
            self._pause(why, lived, deaths)

    def _lived(self) -> tuple[str, bool]:
        """Run the server once, until it dies. Return the cause, and whether it was up."""
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
            # Before `buried`, which may take a second: requests wait from now on, instead of failing on a dead port.
            self._turn(ServerState.RESTARTING)
        cause, self.last_lines = child.buried()
        return why or cause, was_up

    def _watched(self, child: Child) -> str:
        """Watch a server until it dies or hangs. Return the reason if it hangs, else an empty string."""
        heartbeat = Heartbeat(child.pid, lambda: self._health() is not None, self._pace.rhythm, self._clock)
        self._heartbeat = heartbeat
        self._turn(ServerState.UP)
        while not child.ends_within(self._pace.rhythm.every):
            if self._stopping.is_set():
                return ""  # `stop` ends the process; a verdict must not get ahead of it
            if (why := heartbeat.beat()) and child.lives:
                return why
        heartbeat.note()  # the server lived until now
        return ""

    def _started(self) -> Child | None:
        with self._changed:
            if self._stopping.is_set():
                return None
            self._child = Child(self._command)
        return self._child

    def _becomes_healthy(self, child: Child) -> bool:
        """Request `/health` until the server is healthy, dead, or too late."""
        until = self._clock.monotonic() + self._pace.start
        while child.lives and self._clock.monotonic() < until:
            if self._health() == _OK and child.lives:
                return True
            if self._stopping.wait(self._pace.look):
                return False
        return False

    def _health(self) -> int | None:
        """Return the status of `/health`; None without an answer in time. Each request uses a new connection."""
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
"""Seconds that a request waits for a restart. Most models are loaded again by then."""
_STEP: Final = 0.05
_AGAIN: Final = 5.0


class RestartAwareTransport:
    """A transport to a supervised server: requests wait while it restarts."""

    def __init__(
        self, inner: UpstreamTransport, keeper: Supervisor, patience: float = PATIENCE, clock: Clock = CLOCK
    ) -> None:
        """Send through another transport, once the server is up."""
        self._inner: Final = inner
        self._keeper: Final = keeper
        self._patience: Final = patience
        self._clock: Final = clock

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and wait for the headers. Raises `TransportError` if the server is not back in time.

        A server that is given up, or was never up, fails at once.
        """
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
    """A response whose bytes count as a sign of life: a saturated server may not answer `/health`."""

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

"""Keeps a model server running.

    with Keeper(command, port) as keeper:     started, and stopped at the end, with all that it has started
        keeper.wait(0.5)                      loading, up, restarting, lost

One thread owns the process: it starts it, requests its health, and starts it again after it has died or hung
(`heartbeat.py`). A server that has never been healthy is given up at once, and so is one that dies or hangs again and
again soon after its start.
"""

import http.client
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Condition, Event, Thread
from types import TracebackType
from typing import Final, Self

from toolspeak.local.child import Child
from toolspeak.local.heartbeat import HealthInterval, Heartbeat
from toolspeak.local.program import HOST
from toolspeak.runtime.clock import CLOCK, Clock

_LOG: Final = logging.getLogger(__name__)
_OK: Final = 200


class ServerState(StrEnum):
    """How the server stands."""

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

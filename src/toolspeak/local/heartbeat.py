"""Tells a model server that hangs from one that is busy.

A hung server (stopped by a signal, deadlocked, stuck on a dead GPU driver) keeps its socket open: the kernel accepts
connections for it, and every request waits until its own timeout. So `/health` is requested at an interval.

A missed answer alone proves nothing. llama.cpp answers `/health` from the same pool of HTTP threads that holds open
streams, so a saturated server that works well may not answer for minutes. Two more signs of life therefore count:
bytes that arrived for a client, and CPU time that the process has used since the last look. A server without any sign
of life is restarted after a few missed answers; one that only uses CPU time gets `busy` seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolspeak.runtime.clock import Clock

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

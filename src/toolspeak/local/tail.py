"""The last words of a process. Whatever it prints is taken from it at once: a full pipe would stop it."""

from subprocess import Popen
from threading import Thread
from typing import IO, Final

_KEPT: Final = 16_384
_READ: Final = 65_536
_SOON: Final = 1.0


class Tail:
    """Reads what a process prints to its end, closes the pipe, and keeps the end."""

    def __init__(self, process: Popen[bytes]) -> None:
        """Begin to read; the process must have its output in a pipe without a buffer."""
        if process.stdout is None:
            raise ValueError("the process has no pipe for its output")
        self._kept = b""
        self._thread: Final = Thread(target=self._drain, args=(process.stdout,), name="llama-output", daemon=True)
        self._thread.start()

    def lines(self, count: int) -> list[str]:
        """Return the last lines that say something."""
        kept = self._kept.decode(errors="replace").splitlines()
        return [line for line in kept if line.strip()][-count:]

    def end(self) -> None:
        """Wait for the rest of a process that has ended."""
        self._thread.join(_SOON)

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := pipe.read(_READ):
                self._kept = (self._kept + chunk)[-_KEPT:]

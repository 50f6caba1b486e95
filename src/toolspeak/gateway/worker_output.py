"""Passes the output of workers on to standard error: whole lines, each with the number of its worker.

A worker writes its log into a pipe. Only the supervisor writes to standard error, so two lines never mix, however long
they are: a pipe keeps writes of several processes apart up to 4 KiB only, and a traceback is longer.
"""

import json
import os
import sys
from contextlib import suppress
from typing import Final

from toolspeak.config.shape import LogForm
from toolspeak.gateway.access_log import worker_mark

_READ: Final = 1 << 16
_LONGEST: Final = 1 << 20
"""Bytes of a line; a longer one is cut into several."""


class WorkerOutput:
    """The output of one worker."""

    def __init__(self, pipe: int, number: int, form: LogForm) -> None:
        """Take the end of the pipe that is read; it becomes non-blocking."""
        os.set_blocking(pipe, False)
        self.pipe: Final = pipe
        self._number: Final = number
        self._form: Final = form
        self._rest = b""

    def relay(self) -> bool:
        """Pass on what has arrived; return False at the end of the output."""
        try:
            data = os.read(self.pipe, _READ)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._rest and (not data or len(self._rest) > _LONGEST):
            lines.append(self._rest)
            self._rest = b""
        _write(b"".join(map(self._marked, lines)))
        return bool(data)

    def finish(self) -> None:
        """Pass on the rest after the end of the worker, and close the pipe."""
        size = -1
        while self.relay() and size != len(self._rest):  # a child of the worker may still hold the pipe open
            size = len(self._rest)
        if self._rest:
            _write(self._marked(self._rest))
        os.close(self.pipe)

    def _marked(self, line: bytes) -> bytes:
        if self._form is LogForm.TEXT:
            return worker_mark(self._number).encode() + line + b"\n"
        if line.startswith(b"{"):  # by the formatter of the worker, which has put its number in
            return line + b"\n"
        said = {"level": "error", "worker": self._number, "event": "output", "message": line.decode(errors="replace")}
        return json.dumps(said).encode() + b"\n"


def _write(data: bytes) -> None:
    with suppress(OSError, ValueError):  # standard error is closed, or its reader is gone
        sys.stderr.flush()
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

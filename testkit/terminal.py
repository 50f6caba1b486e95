"""Runs a command in its own terminal, 80 columns wide: reads the screen and presses keys."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

CTRL_C, CTRL_D = "\x03", "\x04"
_PATIENCE_S = 30
_TOOLSPEAK = "import fcntl, termios, toolspeak.cli; fcntl.ioctl(0, termios.TIOCSCTTY, 0); toolspeak.cli.main()"
"""It makes the terminal its controlling one, so that Ctrl-C there is a signal."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """`shown` is all that has come so far, `plain` the same without colours."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self._seen = 0
        self._bytes = b""

    @property
    def shown(self) -> str:
        return self._bytes.decode(errors="replace")

    @property
    def plain(self) -> str:
        return _ESCAPES.sub("", self.shown).replace("\r\n", "\n")

    def expect(self, text: str) -> None:
        """Wait until a text comes, colours aside, after all that was expected before."""
        until = time.monotonic() + _PATIENCE_S
        while (at := self.plain.find(text, self._seen)) < 0:
            if not self._read(until):
                raise AssertionError(f"{text!r} did not come, only {self.plain[self._seen :]!r}")
        self._seen = at + len(text)

    def press(self, keys: str) -> None:
        """Type, as people do, when the command waits for input. A signal just before that would be noticed late."""
        state = Path(f"/proc/{self._process.pid}/stat")
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] == "R":
            time.sleep(0.01)
        os.write(self._master, keys.encode())

    def status(self) -> int:
        """Wait for the end."""
        while self._read(time.monotonic() + _PATIENCE_S):
            pass
        return self._process.wait(_PATIENCE_S)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(until - time.monotonic(), 0))
        try:
            more = os.read(self._master, 65536) if ready else b""
        except OSError:  # on Linux, when the other side is closed
            more = b""
        self._bytes += more
        return bool(more)


@contextmanager
def terminal(*args: str, env: Mapping[str, str] | None = None) -> Generator[Terminal, None, None]:
    """Run `toolspeak` with these arguments."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _TOOLSPEAK, *args],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "INPUTRC": "/dev/null", **(env or {})},
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)

"""Runs a command in a terminal and keeps its screens: `pyte` is the terminal, so full-screen programs work, too."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyte

COLUMNS, ROWS = 100, 26
_STEP_S = 0.1
"""Screens that are closer together become one."""
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One character and its look."""

    text: str
    color: str = "default"
    ground: str = "default"
    bold: bool = False
    dim: bool = False
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A screen, and when it was there."""

    seconds: float
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def text(self) -> str:
        return "\n".join("".join(cell.text for cell in row).rstrip() for row in self.rows)


def renamed(frame: Frame, old: str, new: str) -> Frame:
    """Return a screen that shows another path; the rest of its rows moves to the left."""
    return Frame(frame.seconds, tuple(_renamed(row, old, new) for row in frame.rows))


def _renamed(row: tuple[Cell, ...], old: str, new: str) -> tuple[Cell, ...]:
    at = "".join(cell.text for cell in row).find(old)
    if at < 0:
        return row
    name = tuple(replace(row[at], text=char) for char in new)
    short = (*row[:at], *name, *row[at + len(old) :])
    return _renamed((*short, *(Cell(" "),) * (len(row) - len(short))), old, new)


@dataclass
class Recorder:
    """A terminal with a prompt, at which commands are typed."""

    folder: Path
    env: Mapping[str, str]
    columns: int = COLUMNS
    rows: int = ROWS
    frames: list[Frame] = field(default_factory=list[Frame])
    _began: float = field(default_factory=time.monotonic)
    _pid: int = 0
    _fd: int = -1

    def __post_init__(self) -> None:
        self._screen: Any = pyte.Screen(self.columns, self.rows)
        self._stream: Any = pyte.ByteStream(self._screen)

    def run(self, shown: str, command: Sequence[str]) -> None:
        """Type a command at the prompt, and start it."""
        self._feed(b"\x1b[32m$\x1b[0m ")
        for start in range(0, len(shown), 3):
            self._feed(shown[start : start + 3].encode())
            time.sleep(0.03)
            self._keep()
        self._feed(b"\r\n")
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(self.folder)
            os.execvpe(command[0], list(command), dict(self.env))  # noqa: S606 # our own command
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def expect(self, pattern: str, limit_s: float = 60.0) -> None:
        """Wait until the screen shows something."""
        until = time.monotonic() + limit_s
        while not re.search(pattern, self._snapshot().text):
            if time.monotonic() > until or not self._read():
                raise SystemExit(f"the screen does not show {pattern!r}:\n{self._snapshot().text}")

    def press(self, keys: str) -> None:
        """Type, as a person does."""
        for key in keys:
            os.write(self._fd, key.encode())
            self.watch(0.04)

    def watch(self, seconds: float) -> None:
        """Record for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._read():
            pass

    def end(self, number: signal.Signals | None = None) -> int:
        """Wait for the end of the command, after a signal if one is given. Return its exit status."""
        if number is not None:
            os.kill(self._pid, number)
        until = time.monotonic() + _END_S
        while self._read():
            if time.monotonic() > until:
                os.kill(self._pid, signal.SIGKILL)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self) -> bool:
        """Read the output of a short while. False when the command has ended."""
        ready, _, _ = select.select([self._fd], [], [], _STEP_S / 2)
        if ready:
            try:
                chunk = os.read(self._fd, 65536)
            except OSError:  # Linux: the other side is closed
                chunk = b""
            if not chunk:
                self._keep()
                return False
            self._feed(chunk)
            self._answer(chunk)
        self._keep()
        return True

    def _answer(self, chunk: bytes) -> None:
        """Answer the queries of programs: the terminal's identity and its cursor position."""
        if b"\x1b[c" in chunk:
            os.write(self._fd, b"\x1b[?62;c")
        if b"\x1b[6n" in chunk:
            os.write(self._fd, f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R".encode())

    def _feed(self, chunk: bytes) -> None:
        # pyte prints sequences with private prefixes that it does not know (keyboard protocols, ids) as text.
        self._stream.feed(re.sub(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", b"", chunk))

    def _keep(self) -> None:
        frame = self._snapshot()
        if self.frames and frame.rows == self.frames[-1].rows:
            return
        if self.frames and frame.seconds - self.frames[-1].seconds < _STEP_S:
            frame = Frame(self.frames.pop().seconds, frame.rows)
        self.frames.append(frame)

    def _snapshot(self) -> Frame:
        rows = (tuple(_cell(self._screen.buffer[y][x]) for x in range(self.columns)) for y in range(self.rows))
        return Frame(time.monotonic() - self._began, tuple(rows))


def _cell(char: Any) -> Cell:  # noqa: ANN401 # pyte has no types
    return Cell(char.data, char.fg, char.bg, char.bold, getattr(char, "dim", False), char.reverse)

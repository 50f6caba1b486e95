"""A person's word on a call: it is shown whole, with whatever cannot be seen written out.

▸ shell
    {"command": "rm -r build"}
allow it? y yes · n no, because … · a always shell · q stop the run >
"""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import click

from toolspeak.cli.json_output import indented
from toolspeak.cli.terminal import Paint, below, sign, visible
from toolspeak.runs.watch import CallAsked

if sys.platform != "win32":
    import termios

_WIDE: Final = 100
_LINE: Final = 4096
ReadLine: TypeAlias = Callable[[], Awaitable[str | None]]
"""Waits for a line; None is Ctrl-D."""


class Answer(StrEnum):
    """What a person may say."""

    YES = "y"
    NO = "n"
    ALWAYS = "a"
    QUIT = "q"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer, and a reason for a no."""

    answer: Answer
    reason: str = ""


class Asker:
    """Asks; remembers the tools that are always allowed."""

    def __init__(self, paint: Paint, read: ReadLine) -> None:
        """Ask on standard error, and read so."""
        self._paint: Final = paint
        self._read: Final = read
        self._always: Final[set[str]] = set()

    def knows(self, call: CallAsked) -> bool:
        """Tell whether the person need not be asked."""
        return call.name in self._always

    async def word(self, call: CallAsked) -> Said:
        """Show a call, and ask until the answer is one."""
        for line in self._shown(call):
            click.echo(line, err=True)
        while True:
            click.echo(self._question(call), err=True, nl=False)
            said = _understood(await self._read())
            if said is not None:
                if said.answer is Answer.ALWAYS:
                    self._always.add(call.name)
                return said

    def _shown(self, call: CallAsked) -> list[str]:
        mark, name = self._paint.ink(sign("▸", ">"), "yellow"), self._paint.ink(visible(call.name), bold=True)
        arguments = indented(visible(call.arguments), (self._paint.width or _WIDE) - 4)
        return [f"{mark} {name}", *below(arguments, self._paint)]

    def _question(self, call: CallAsked) -> str:
        name = visible(call.name).replace("\n", " ")
        dot = sign("·", "|")
        asked = f"allow it? y yes {dot} n no, because … {dot} a always {name} {dot} q stop the run"
        return f"{self._paint.ink(asked, 'yellow')} {sign('›', '>')} "  # noqa: RUF001 - a sign for people


def _understood(line: str | None) -> Said | None:
    """Read an answer; what is none is asked for again, for nothing is allowed by accident."""
    if line is None:
        return Said(Answer.QUIT)
    word, _, rest = line.strip().partition(" ")
    words = {"y": Answer.YES, "yes": Answer.YES, "n": Answer.NO, "no": Answer.NO, "a": Answer.ALWAYS, "q": Answer.QUIT}
    found = words.get(word.lower())
    if found is None or (rest and found is not Answer.NO):
        return None
    return Said(found, rest.strip())


async def typed_line() -> str | None:
    """Wait for a line that is typed from now on: what was typed before the question is no answer to it.

    A thread reads it, and is left behind if nobody answers: the process can end all the same.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()
    stdin = sys.stdin.fileno()

    def hand_over(read: bytes) -> None:
        if not line.done():
            line.set_result(read.decode("utf-8", "replace") if read else None)

    def read() -> None:
        got = os.read(stdin, _LINE)
        if not loop.is_closed():
            loop.call_soon_threadsafe(hand_over, got)

    if sys.platform != "win32" and os.isatty(stdin):
        termios.tcflush(stdin, termios.TCIFLUSH)
    threading.Thread(target=read, daemon=True).start()
    return await line

"""Ask the user whether a call may run. The call is shown in full, with invisible characters as escapes.

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
from toolspeak.cli.terminal import INDENT, UNLIMITED, Paint, below, dotted, sign, visible
from toolspeak.runs.watch import CallAsked

if sys.platform != "win32":
    import termios

_LONGEST_LINE: Final = 4096
ReadLine: TypeAlias = Callable[[], Awaitable[str | None]]
"""Waits for a line; None means Ctrl-D."""


class Choice(StrEnum):
    """The answers that a user can give."""

    YES = "y"
    NO = "n"
    ALWAYS = "a"
    QUIT = "q"


_WORDS: Final = {
    "y": Choice.YES,
    "yes": Choice.YES,
    "n": Choice.NO,
    "no": Choice.NO,
    "a": Choice.ALWAYS,
    "q": Choice.QUIT,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The choice of the user, and the reason for a no."""

    choice: Choice
    reason: str = ""


class Asker:
    """Asks the user on standard error, and remembers which tools are always allowed."""

    def __init__(self, paint: Paint, read: ReadLine) -> None:
        """Read answers with `read`."""
        self._paint: Final = paint
        self._read: Final = read
        self._always: Final[set[str]] = set()

    def always_allows(self, call: CallAsked) -> bool:
        """Whether the user has allowed all calls of this tool."""
        return call.name in self._always

    async def ask(self, call: CallAsked) -> Decision:
        """Show a call, and ask until the answer is valid."""
        for line in self._call_lines(call):
            click.echo(line, err=True)
        while True:
            click.echo(self._question(call), err=True, nl=False)
            decision = _parse(await self._read())
            if decision is not None:
                if decision.choice is Choice.ALWAYS:
                    self._always.add(call.name)
                return decision

    def _call_lines(self, call: CallAsked) -> list[str]:
        mark, name = self._paint.ink(sign("▸", ">"), "yellow"), self._paint.ink(visible(call.name), bold=True)
        arguments = indented(visible(call.arguments), (self._paint.width or UNLIMITED) - len(INDENT))
        return [f"{mark} {name}", *below(arguments, self._paint)]

    def _question(self, call: CallAsked) -> str:
        name = visible(call.name).replace("\n", " ")
        asked = dotted("allow it? y yes", "n no, because …", f"a always {name}", "q stop the run")
        return f"{self._paint.ink(asked, 'yellow')} {sign('›', '>')} "  # noqa: RUF001 - a sign for people


def _parse(line: str | None) -> Decision | None:
    """Parse an answer. None means that it is not valid and the question is repeated: a typo must not allow a call."""
    if line is None:
        return Decision(Choice.QUIT)
    word, _, rest = line.strip().partition(" ")
    found = _WORDS.get(word.lower())
    if found is None or (rest and found is not Choice.NO):
        return None
    return Decision(found, rest.strip())


async def typed_line() -> str | None:
    """Wait for a line that is typed from now on; None means Ctrl-D.

    Keys that were pressed before the question are discarded: they are no answer to it. A daemon thread reads the line,
    because `read` on a terminal cannot be cancelled; the process can exit while the thread still waits.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()
    stdin = sys.stdin.fileno()

    def hand_over(read: bytes) -> None:
        if not line.done():
            line.set_result(read.decode("utf-8", "replace") if read else None)

    def read() -> None:
        got = os.read(stdin, _LONGEST_LINE)
        if not loop.is_closed():
            loop.call_soon_threadsafe(hand_over, got)

    if sys.platform != "win32" and os.isatty(stdin):
        termios.tcflush(stdin, termios.TCIFLUSH)
    threading.Thread(target=read, daemon=True).start()
    return await line

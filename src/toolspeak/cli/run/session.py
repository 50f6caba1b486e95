"""Starts or resumes a run, follows it to its end (events, approvals, Ctrl-C), and prints the result.

A call that needs approval is shown in full, with invisible characters as escapes:

    ▸ shell
        {"command": "rm -r build"}
    allow it? y yes · n no, because … · a always shell · q stop the run >
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from types import FrameType
from typing import Any, Final, TypeAlias

import click
from msgspec.structs import replace as replace_fields

from toolspeak.agent.runs.events import RunEnded, ToolCallAsked
from toolspeak.agent.runs.provider import OpenRuns, open_user_runs
from toolspeak.agent.runs.runs import NumberedEvent, Runs, RunView, Spec, continued, event_json, view_json
from toolspeak.cli.output import indented, safe_json
from toolspeak.cli.run.history import find_run, short_id, status_text
from toolspeak.cli.run.screen import PlainScreen, RunScreen, Transcript
from toolspeak.cli.terminal import (
    INDENT,
    UNLIMITED,
    Paint,
    count_noun,
    duration_text,
    indent_below,
    join_dotted,
    sign,
    visible,
)
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Status
from toolspeak.errors import BadRequest, MissingExtra

# ---------------------------------------------------------------- approval

if sys.platform == "win32":
    import msvcrt

    async def _new_keys(stdin: int) -> None:
        """Discard what was typed, and wait for a key: a console cannot be waited for."""
        del stdin
        while msvcrt.kbhit():
            msvcrt.getwch()
        while not msvcrt.kbhit():  # noqa: ASYNC110 - nothing sets an event
            await asyncio.sleep(_KEY_INTERVAL_S)
else:
    import termios

    async def _new_keys(stdin: int) -> None:
        """Discard what was typed, and wait for a line."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        termios.tcflush(stdin, termios.TCIFLUSH)
        loop.add_reader(stdin, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(stdin)


_KEY_INTERVAL_S: Final = 0.05
_LONGEST_LINE: Final = 4096
ReadLine: TypeAlias = Callable[[], Awaitable[str | None]]
"""Waits for a line of the user; None means Ctrl-D."""


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

    def always_allows(self, call: ToolCallAsked) -> bool:
        """Whether the user has allowed all calls of this tool."""
        return call.name in self._always

    async def ask(self, call: ToolCallAsked) -> Decision:
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

    def _call_lines(self, call: ToolCallAsked) -> list[str]:
        mark, name = self._paint.ink(sign("▸", ">"), "yellow"), self._paint.ink(visible(call.name), bold=True)
        arguments = indented(visible(call.arguments), (self._paint.width or UNLIMITED) - len(INDENT))
        return [f"{mark} {name}", *indent_below(arguments, self._paint)]

    def _question(self, call: ToolCallAsked) -> str:
        name = visible(call.name).replace("\n", " ")
        asked = join_dotted("allow it? y yes", "n no, because …", f"a always {name}", "q stop the run")
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

    Keys that were pressed before the question are discarded: a user who types ahead has not seen the call that an early
    `y` would allow. `read` is called when a line is there: it cannot be cancelled, and after a Ctrl-C it would take the
    next line of a chat.
    """
    stdin = sys.stdin.fileno()
    await _new_keys(stdin)
    line = os.read(stdin, _LONGEST_LINE)
    return line.decode("utf-8", "replace") if line else None


# ---------------------------------------------------------------- the run

INTERRUPTED: Final = 130
EXIT_STATUSES: Final = {Status.DONE: 0, Status.SUMMED_UP: 1, Status.FAILED: 1, Status.CANCELLED: INTERRUPTED}
NOT_STORED: Final = "this run was not stored, so it cannot be resumed; pip install 'toolspeak[runs]' stores runs"
_NO_USER: Final = "this call needs the approval of a user, and there is no terminal to ask on"


@dataclass(frozen=True, slots=True)
class Display:
    """How to show a run: progress on standard error; the text, one object or the events on standard output."""

    paint: Paint
    expand: bool = False
    as_json: bool = False
    as_events: bool = False
    asks: bool = False
    """Whether a user can be asked for approval."""


async def start_run(config: Config, spec: Spec, display: Display) -> int:
    """Start a run and follow it; return the exit status."""
    async with open_user_runs(config) as opened:
        return await _followed(opened, await opened.runs.start(spec), -1, display)


async def continue_run(config: Config, prefix: str, typed: dict[str, Any], display: Display) -> int:
    """Start a run that continues an ended one, and follow it; return the exit status. `typed` replaces its fields."""
    async with open_user_runs(config) as opened:
        if not opened.lasts:
            raise MissingExtra("toolspeak run --continue", "runs")
        view = await opened.runs.show(await find_run(opened.runs, prefix))
        spec = continued(view, typed["task"])
        return await _followed(opened, await opened.runs.start(replace_fields(spec, **typed)), -1, display)


async def resume_run(config: Config, prefix: str, display: Display) -> int:
    """Resume a run that was stopped, or follow one that is running; return the exit status."""
    async with open_user_runs(config) as opened:
        runs = opened.runs
        id = await find_run(runs, prefix)
        # A run that ended is shown from here on; its earlier events were seen. One that still runs is shown from its
        # beginning.
        last = -1
        if (await runs.show(id)).line.ended:
            last = max([each.number async for each in runs.events(id)], default=-1)
        await runs.resume(id)
        return await _followed(opened, id, last, display)


async def _followed(opened: OpenRuns, id: str, after: int, display: Display) -> int:
    view = await opened.runs.show(id)
    transcript = Transcript(display.paint, expand=display.expand)
    screen = choose_screen(transcript, display.paint, view.spec.rounds, quiet=display.as_events)
    if not display.as_events:
        screen.note(display.paint.ink(_head(view), dim=True))
    asker = Asker(display.paint, typed_line) if display.asks else None
    tell = _echo_event if display.as_events else ignore_event
    ended = await Follow(opened.runs, id, screen, asker, tell).to_end(after)
    view = await opened.runs.show(id)
    if display.as_json:
        click.echo(safe_json(view_json(view)))
    elif ended.text and not display.as_events:
        click.echo(visible(ended.text).strip("\n"))
    for line in _last_lines(view, ended, display, opened):
        click.echo(line, err=True)
    return EXIT_STATUSES[ended.status]


def choose_screen(transcript: Transcript, paint: Paint, rounds: int, *, quiet: bool = False) -> RunScreen:
    """Return a live screen if standard error is a terminal that can rewrite lines and rich is installed."""
    if quiet or not sys.stderr.isatty() or find_spec("rich") is None:
        return PlainScreen(transcript, quiet=quiet)
    # rich is an extra, and slow to import.
    from toolspeak.cli.run.live_screen import LiveScreen, can_rewrite  # noqa: PLC0415

    return LiveScreen(transcript, paint, rounds) if can_rewrite() else PlainScreen(transcript)


def _echo_event(each: NumberedEvent) -> None:
    click.echo(json.dumps(event_json(each)))  # ASCII only: no character in it can control the terminal


def ignore_event(each: NumberedEvent) -> None:
    """Do nothing with an event: the screen shows it."""
    del each


def _head(view: RunView) -> str:
    where = [visible(view.spec.folder)] if view.spec.folder else []
    return join_dotted(f"run {short_id(view.line.id)}", *where, f"approval {view.spec.approval}")


def result_lines(view: RunView, ended: RunEnded, paint: Paint) -> Iterator[str]:
    """Write how the run ended: the reason, or the number of its rounds and its duration."""
    line, status = view.line, status_text(ended.status)
    if ended.reason:
        yield paint.ink(f"{status}: {visible(ended.reason)}", "red" if ended.status is Status.FAILED else "yellow")
    else:
        words = status, count_noun(line.rounds, "round"), duration_text(line.ended - line.began)
        yield paint.ink(join_dotted(*words), dim=True)


def _last_lines(view: RunView, ended: RunEnded, display: Display, opened: OpenRuns) -> Iterator[str]:
    """Write how the run ended, and how to resume it."""
    ink, line = display.paint.ink, view.line
    if ended.reason or not display.as_events:
        yield from result_lines(view, ended, display.paint)
    if ended.status in (Status.DONE, Status.SUMMED_UP) and opened.lasts and not display.as_events:
        yield ink(f'for another task: toolspeak run --continue {short_id(line.id)} "…"', dim=True)
    if ended.status in (Status.CANCELLED, Status.FAILED):
        resumes = f"to continue: toolspeak runs resume {short_id(line.id)}"
        yield ink(resumes if opened.lasts else NOT_STORED, dim=True)


class Follow:
    """Follows a run to its end. Without an asker, calls that need approval are denied."""

    def __init__(
        self, runs: Runs, id: str, screen: RunScreen, asker: Asker | None, tell: Callable[[NumberedEvent], None]
    ) -> None:
        """Show the run on the screen, ask with the asker, and pass each event to `tell`."""
        self._runs: Final = runs
        self._id: Final = id
        self._screen: Final = screen
        self._asker: Final = asker
        self._tell: Final = tell
        self._asking: asyncio.Task[Decision] | None = None
        """The question to the user; Ctrl-C cancels it."""
        self._stopping: asyncio.Task[None] | None = None
        """The cancellation of the run. Once it is set, a second Ctrl-C exits at once."""

    async def to_end(self, after: int = -1) -> RunEnded:
        """Show all events after a number; return the last one."""
        ended: RunEnded | None = None
        with self._interruptible():
            try:
                await self._answer_all()
                async for each in self._runs.events(self._id, after):
                    self._screen.show(each.event)
                    self._tell(each)
                    if isinstance(each.event, ToolCallAsked):
                        await self._answer(each.event)
                    ended = each.event if isinstance(each.event, RunEnded) else None
            finally:
                self._screen.end()
        if self._stopping is not None:
            await self._stopping
        if ended is None:
            raise BadRequest(
                f"the events of run {self._id} ended before the run did; "
                f"to follow it again: toolspeak runs resume {short_id(self._id)}"
            )
        return ended

    async def _answer_all(self) -> None:
        """Answer the calls that wait already: their events may be older than the ones that will be shown."""
        view = await self._runs.show(self._id)
        for call in view.asked:
            await self._answer(ToolCallAsked(view.line.rounds, call.id, call.name, call.arguments))

    async def _answer(self, asked: ToolCallAsked) -> None:
        """Approve or deny a call, unless it waits no longer. Events of an old run contain calls answered long ago."""
        if asked.id not in [call.id for call in (await self._runs.show(self._id)).asked]:
            return
        if self._asker is None:
            await self._approve(asked, allowed=False, reason=_NO_USER)
        elif self._asker.always_allows(asked):
            await self._approve(asked, allowed=True)
        else:
            await self._ask(asked, self._asker)

    async def _ask(self, asked: ToolCallAsked, asker: Asker) -> None:
        with self._screen.paused():
            # A task of its own, and `wait` instead of `await`: Ctrl-C cancels the question, not this coroutine, which
            # must go on to follow the run to its end.
            self._asking = asyncio.get_running_loop().create_task(asker.ask(asked))
            await asyncio.wait((self._asking,))
        if self._asking.cancelled():  # by Ctrl-C
            return
        decision = self._asking.result()
        if decision.choice is Choice.QUIT:
            self._stop()
        else:
            await self._approve(asked, allowed=decision.choice is not Choice.NO, reason=decision.reason)

    async def _approve(self, asked: ToolCallAsked, *, allowed: bool, reason: str = "") -> None:
        with suppress(BadRequest):  # another client has answered in the meantime
            await self._runs.approve(self._id, asked.id, allowed=allowed, reason=reason)

    def _stop(self) -> None:
        """Cancel the run. The second time, exit at once, even if calls still run."""
        if self._stopping is not None:
            self._screen.end()
            os._exit(INTERRUPTED)  # `sys.exit` would wait for threads in which tools still run
        if self._asking is not None:
            self._asking.cancel()
        self._screen.note("stopping; press Ctrl-C again to exit at once")
        self._stopping = asyncio.get_running_loop().create_task(self._runs.cancel(self._id))

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        # asyncio's own handler would cancel the task that follows; the run must end in order instead.
        loop = asyncio.get_running_loop()

        def interrupted(number: int, frame: FrameType | None) -> None:
            del number, frame
            loop.call_soon_threadsafe(self._stop)

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

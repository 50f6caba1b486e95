"""One run followed to its end: shown, asked about, stopped at Ctrl-C."""

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from toolspeak.cli._run_ask import Answer, Asker, Said
from toolspeak.cli._run_screen import RunScreen
from toolspeak.errors import BadRequest
from toolspeak.runs.runs import Numbered, Runs
from toolspeak.runs.watch import CallAsked, RunEnded

INTERRUPTED: Final = 130
_NOBODY: Final = "nobody is there to ask"


class Follow:
    """Follows a run. Without an asker, what would need a person's word is not done."""

    def __init__(
        self, runs: Runs, id: str, screen: RunScreen, asker: Asker | None, tell: Callable[[Numbered], None]
    ) -> None:
        """Take where the run is, where it is shown, who is asked, and who else is told."""
        self._runs: Final = runs
        self._id: Final = id
        self._screen: Final = screen
        self._asker: Final = asker
        self._tell: Final = tell
        self._asking: asyncio.Task[Said] | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def to_end(self, after: int = -1) -> RunEnded:
        """Show everything behind a number; return how the run ended."""
        ended: RunEnded | None = None
        with self._interruptible():
            try:
                await self._answer_all()
                async for each in self._runs.events(self._id, after):
                    self._screen.show(each.event)
                    self._tell(each)
                    if isinstance(each.event, CallAsked):
                        await self._answer(each.event)
                    ended = each.event if isinstance(each.event, RunEnded) else None
            finally:
                self._screen.end()
        if self._stopping is not None:
            await self._stopping
        if ended is None:
            raise BadRequest(f"the events of run {self._id} broke off")
        return ended

    async def _answer_all(self) -> None:
        """Give the word on calls that wait already: they may have been told of before we came."""
        view = await self._runs.show(self._id)
        for call in view.asked:
            await self._answer(CallAsked(view.line.rounds, call.id, call.name, call.arguments))

    async def _answer(self, asked: CallAsked) -> None:
        """Give the word on a call; one that waits no longer, as in a run that is shown from its start, needs none."""
        if asked.id not in [call.id for call in (await self._runs.show(self._id)).asked]:
            return
        if self._asker is None:
            await self._say(asked, allowed=False, reason=_NOBODY)
        elif self._asker.knows(asked):
            await self._say(asked, allowed=True)
        else:
            await self._ask(asked, self._asker)

    async def _ask(self, asked: CallAsked, asker: Asker) -> None:
        with self._screen.paused():
            self._asking = asyncio.get_running_loop().create_task(asker.word(asked))
            await asyncio.wait((self._asking,))
        if self._asking.cancelled():  # by Ctrl-C
            return
        said = self._asking.result()
        if said.answer is Answer.QUIT:
            self._stop()
        else:
            await self._say(asked, allowed=said.answer is not Answer.NO, reason=said.reason)

    async def _say(self, asked: CallAsked, *, allowed: bool, reason: str = "") -> None:
        with suppress(BadRequest):  # somebody else was quicker
            await self._runs.approve(self._id, asked.id, allowed=allowed, reason=reason)

    def _stop(self) -> None:
        """Cancel the run; who is asked for it twice leaves, whatever still runs."""
        if self._stopping is not None:
            self._screen.end()
            os._exit(INTERRUPTED)
        if self._asking is not None:
            self._asking.cancel()
        self._screen.note("stopping; Ctrl-C again leaves at once")
        self._stopping = asyncio.get_running_loop().create_task(self._runs.cancel(self._id))

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        loop = asyncio.get_running_loop()

        def interrupted(number: int, frame: FrameType | None) -> None:
            del number, frame
            loop.call_soon_threadsafe(self._stop)

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

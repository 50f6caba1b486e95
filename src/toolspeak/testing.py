r"""Upstreams that say what a script says, for tests: yours as well as ours.

    upstream = ScriptedUpstream("It is noon.")
    outcome = drive_sync(take_turn(request, plan, ids), upstream, events.extend)
    upstream.requests          # what was sent, in order

An answer is a text, a failure, or a list of events.
"""

from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from typing import TypeAlias

from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request

Scripted: TypeAlias = str | Failure | Sequence[Event]
"""A text, a failure, or the events of an answer."""


def called(name: str, arguments: str = "{}", id: str = "call_1") -> tuple[Event, ...]:
    """Return the events of a native call."""
    return (CallStarted(id, name, id), ArgsDelta(id, arguments), CallEnded(id))


def failed(kind: FailureKind, message: str = "scripted", status: int = 400, salvage: str = "") -> Failure:
    """Return a failure, as a wire would read it."""
    return Failure(kind, message, status, salvage=salvage)


class ScriptedUpstream:
    """Answers each request with the next part of its script; after the last one, with an error."""

    def __init__(self, *answers: Scripted, chunk: int = 5, usage: Usage = Usage(10, 5)) -> None:
        """Cut texts in pieces of `chunk` characters, one a batch; each answer costs `usage`."""
        self._answers = iter(answers)
        self._chunk = chunk
        self._usage = usage
        self.requests: list[Request] = []
        self.closed = 0
        """Answers that were closed before their end."""

    def open(self, request: Request) -> Generator[list[Event], None, None]:
        """Answer a request."""
        self.requests.append(request)
        answer = next(self._answers, Failure(FailureKind.OTHER, "the script has no more answers", 500))
        return self._batches(answer)

    def _batches(self, answer: Scripted) -> Generator[list[Event], None, None]:
        ended = False
        try:
            for batch in self._cut(answer):
                ended = isinstance(batch[-1], Finished | Failed)
                yield batch
        finally:
            self.closed += not ended

    def _cut(self, answer: Scripted) -> Iterator[list[Event]]:
        if isinstance(answer, Failure):
            yield [Failed(answer)]
            return
        if isinstance(answer, str):
            pieces = [answer[start : start + self._chunk] for start in range(0, len(answer), self._chunk)]
            answer = [TextDelta(piece) for piece in pieces]
        yield from ([event] for event in answer)
        if not answer or not isinstance(answer[-1], Finished | Failed):
            calls = any(isinstance(event, CallEnded) for event in answer)
            yield [Finished(StopReason.CALLS if calls else StopReason.END, self._usage)]


class AsyncScriptedUpstream:
    """The same, for the asynchronous driver."""

    def __init__(self, script: ScriptedUpstream) -> None:
        """Take the script."""
        self.script = script

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Answer a request."""
        batches = self.script.open(request)
        try:
            for batch in batches:
                yield batch
        finally:
            batches.close()

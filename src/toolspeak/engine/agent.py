"""A run: turns and tools until the task is done (RUN-1). A program, as a turn is one.

    program = run(task)
    TakeTurn(round, request)   one turn of the model              answered with the Turn
    RunTools(round, calls)     run these, in any order            answered with their Results, in the calls' order

Either may be answered with STOP instead: somebody cancelled. Everything else follows from the answers, so whoever
keeps the answers can run the program again to the same place: they are the journal, and nothing else is stored.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from toolspeak.engine.governor import Governor
from toolspeak.ir.event import Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact, Round, expand_rounds
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.ir.turn import Turn

ROUNDS: Final = 50
_NO_MORE = "You may not call any more tools. Say now, in words, what was done and what came of it."
_NO_CALLS = ToolChoice(ChoiceMode.NONE)


class Status(StrEnum):
    """How a run stands. The first two go on, the others are its end."""

    RUNNING = "running"
    WAITING = "waiting"
    """For a person's word on a call."""
    DONE = "done"
    SUMMED_UP = "summed_up"
    """Its rounds were used up, or it went in circles: the model was made to say what it had."""
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Task:
    """What a run begins with. `request` has the conversation and the tools; `ending` names tools whose call ends it."""

    request: Request
    rounds: int = ROUNDS
    ending: frozenset[str] = frozenset()


class TakeTurn(Struct, frozen=True, gc=False):
    """Let the model answer; `round` counts from 0, and the turn that sums up has the number after the last."""

    round: int
    request: Request


class RunTools(Struct, frozen=True, gc=False):
    """Run calls of one turn."""

    round: int
    calls: tuple[Call, ...]


class Stop(Struct, frozen=True, gc=False):
    """Somebody cancelled the run."""


STOP: Final = Stop()
RunEffect: TypeAlias = TakeTurn | RunTools
RunAnswer: TypeAlias = Turn | tuple[Result, ...] | Stop | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: `kept` is its message with all rounds, `reason` says in words why it ended so."""

    status: Status
    kept: Compact
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """Return the final text."""
        return "".join(part.text for part in self.kept.message.parts if isinstance(part, Text))


RunProgram: TypeAlias = Generator[RunEffect, RunAnswer, Ending]


def run(task: Task) -> RunProgram:
    """Work on a task until it is done, its rounds are used up, somebody cancels, or a turn fails."""
    return _Run(task).work()


class _Run:
    def __init__(self, task: Task) -> None:
        self._task: Final = task
        self._rounds: Final[list[Round]] = []
        self._governor: Final = Governor()
        self._usage = Usage()

    def work(self) -> RunProgram:
        while len(self._rounds) < self._task.rounds:
            turn = yield from self._turn(self._request())
            if turn is None or turn.failure is not None or not turn.calls:
                return self._ended(turn)
            if (results := (yield RunTools(len(self._rounds), turn.calls))) is STOP:
                return self._end(Status.CANCELLED, (), "cancelled while tools ran")
            if not isinstance(results, tuple):
                raise TypeError(f"RunTools was answered with {type(results).__name__}")
            if (said := self._keep(turn, results)) is not None:
                return self._end(Status.DONE, (Text(said),), "")
            if self._governor.circles:
                return (yield from self._sum_up("it went in circles: the same call gave the same result again"))
        return (yield from self._sum_up(f"its {self._task.rounds} rounds were used up"))

    def _turn(self, request: Request) -> Generator[RunEffect, RunAnswer, Turn | None]:
        answer = yield TakeTurn(len(self._rounds), request)
        if answer is STOP:
            return None
        if not isinstance(answer, Turn):
            raise TypeError(f"TakeTurn was answered with {type(answer).__name__}")
        self._usage = self._usage.plus(answer.usage)
        return answer

    def _keep(self, turn: Turn, results: tuple[Result, ...]) -> str | None:
        """Keep a round; return the final text if one of its calls ends the run."""
        before = tuple(part for part in turn.parts if isinstance(part, Text | Reasoning))
        self._rounds.append(Round(before, turn.calls, self._governor.seen(turn.calls, results)))
        ended = [result for result in results if result.name in self._task.ending and not result.is_error]
        return "".join(piece.text for piece in ended[-1].content if isinstance(piece, Text)) if ended else None

    def _sum_up(self, why: str) -> RunProgram:
        request = self._request()
        asked = replace(request, messages=(*request.messages, Message(Role.USER, (Text(_NO_MORE),))), choice=_NO_CALLS)
        turn = yield from self._turn(asked)
        if turn is None or turn.failure is not None:
            return self._ended(turn)
        return self._end(Status.SUMMED_UP, _said(turn), why)

    def _request(self) -> Request:
        request = self._task.request
        return replace(request, messages=(*request.messages, *expand_rounds(self._rounds)))

    def _ended(self, turn: Turn | None) -> Ending:
        if turn is None:
            return self._end(Status.CANCELLED, (), "cancelled while the model wrote")
        if turn.failure is not None:
            return self._end(Status.FAILED, _said(turn), turn.failure.message, turn.failure)
        return self._end(Status.DONE, _said(turn), "")

    def _end(
        self, status: Status, parts: tuple[Text | Reasoning, ...], reason: str, failure: Failure | None = None
    ) -> Ending:
        kept = Compact(Message(Role.ASSISTANT, parts), tuple(self._rounds))
        return Ending(status, kept, reason, self._usage, failure)


def _said(turn: Turn) -> tuple[Text | Reasoning, ...]:
    return tuple(part for part in turn.parts if isinstance(part, Text | Reasoning))

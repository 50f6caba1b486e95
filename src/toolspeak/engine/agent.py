"""Runs a task as a generator without I/O: turns and tools until the task is done (RUN-1).

    program = run_task(task)
    TakeTurn(round, request)   one turn of the model              answered with the Turn
    RunTools(round, calls)     run these, in any order            answered with their Results, in the calls' order

    if the turn                                           the run
    has calls                                             runs them, and continues
    has calls that may not run                            tells the model why, and continues
    has words only                                        is done
    would end it, and parts of the task are left          names them to the model once, and continues
    has nothing, or comes after the last round            asks for words, without tools, and is summed up
    has failed                                            has failed; all its rounds are kept

Either effect may be answered with STOP instead, which cancels the run.

The program is deterministic: everything it does follows from the task and the answers to its effects. So the answers
are the journal, and nothing else is stored. To continue after a crash, a worker replays them to a new program, which
arrives at the same effect without running a turn or a tool twice (P4). A failed run continues if all its answers but
the last are replayed. Therefore nothing here may read a clock, a random number or a configuration.

`Governor` detects runs that go in circles; the model gets a nudge first, then the run is summed up (RUN-7):

    look({"at": "door"}) -> "shut"                      first and second time: nothing
    look({ "at":"door" }) -> "shut"                     third: a nudge follows the result
    look({"at": "door"}) -> "shut"                      fourth: the run is summed up

Without it, models go on: 220 identical calls in 25 minutes were reported (pi #9637). It counts over the whole run,
whatever comes between, so it sees circles of several calls too. It counts pairs of call and result, because a call
whose result changes is not a circle: polling is legal.
"""

from collections import Counter
from collections.abc import Container, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from toolspeak.engine.agent_prompt import spoken, task_of, unfinished
from toolspeak.engine.trouble import error_result
from toolspeak.errors import BadJson
from toolspeak.ir.event import CallRejected, StopReason, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, ResultPart, Role, Text, part_text
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact, Round, expand, expand_rounds
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.ir.turn import Turn
from toolspeak.text.strict import dump, parse, parse_object

REPEATS: Final = 3
_NUDGE = (
    "{name} was called with these arguments {count} times, and gave the same result each time. It will not change: do "
    "something else, or say what you have found."
)
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_Key: TypeAlias = tuple[str, bytes, tuple[str, ...]]


class Governor:
    """Counts in how many rounds a call had the same result."""

    def __init__(self, repeats: int = REPEATS) -> None:
        """Nudge when a call has had the same result in `repeats` rounds."""
        self._repeats: Final = repeats
        self._counts: Final[Counter[_Key]] = Counter()
        self.circles = False
        """Whether a call was repeated after its nudge."""

    def seen(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Take a round's calls and their results; return the results, with a nudge where one is due."""
        keys = [_key(call, result) for call, result in zip(calls, results, strict=True)]
        # Two equal calls in one round count once: the model could not have reacted to a nudge between them.
        self._counts.update(set(keys))
        self.circles = self.circles or any(self._counts[key] > self._repeats for key in keys)
        return tuple(self._nudged(result, key) for result, key in zip(results, keys, strict=True))

    def _nudged(self, result: Result, key: _Key) -> Result:
        count = self._counts[key]
        if count < self._repeats:
            return result
        return replace(result, content=(*result.content, Text(_NUDGE.format(count=count, name=key[0]))))


def _key(call: Call, result: Result) -> _Key:
    return call.name, _canonical(call.arguments), tuple(map(_seen, result.content))


def _canonical(arguments: str) -> bytes:
    """Return arguments in a form that does not depend on blanks and the order of keys."""
    try:
        return msgspec.json.encode(parse(arguments or "{}"), order="sorted")
    except BadJson:
        return arguments.encode("utf-8", "surrogatepass")


def _seen(piece: ResultPart) -> str:
    """Return the content of a piece for comparison; images are compared by their data, not by their description."""
    return piece.data or piece.url if isinstance(piece, Image) else part_text(piece)


ROUNDS: Final = 50
"""The default limit of rounds."""
_NO_MORE = "You may not call any more tools. Say now, in words, what was done and what came of it."
_NO_MARKUP = (
    "That was a tool call, and tools are closed: nothing was run. Write plain sentences for the user: what was done, "
    "what came of it, and what is left."
)
_WROTE_CALLS = "the model wrote tool calls or results as text"
_LEFT = "Not yet: parts of the task are left.\n{left}\nThe task was: {task}\nDo what is left now: call the tool for it."
_MOST_REVIEWS: Final = 2
"""Times that a run is told what is left. After them, the model decides."""
_NO_CALLS = ToolChoice(ChoiceMode.NONE)
_SILENT = "the model said nothing"
_CIRCLES = "it went in circles: the same call gave the same result again"
_CUT: Final = {
    StopReason.LENGTH: "its last words were cut: the model may write no more tokens",
    StopReason.FILTER: "its last words were cut by the upstream's filter",
}
CallOrError: TypeAlias = tuple[Call, Result | None]
"""A call, and its error result if it may not run."""
NAMELESS = "unknown"
_TOO_EARLY = "Not yet: look at the results of the other calls first, then call it again."


class Status(StrEnum):
    """The status of a run. RUNNING and WAITING continue; all others are final."""

    RUNNING = "running"
    WAITING = "waiting"
    """The run waits until a person approves or rejects a call."""
    DONE = "done"
    SUMMED_UP = "summed_up"
    """The rounds were used up, the run went in circles, or the model was silent; the model then summed up its work."""
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Task:
    """The input of a run. `request` has the conversation and the tools."""

    request: Request
    rounds: int = ROUNDS
    """The most rounds with calls; after them the model must sum up."""
    ending: frozenset[str] = frozenset()
    """The names of tools whose successful call ends the run, such as `final_output`."""
    reviewed: tuple[str, ...] = ()
    """The names of the run's tools, by which an ending is reviewed: what is left of the task is named to the model, and
    a call as text is no final text. Empty: no review, as in runs that older versions have stored."""


class TakeTurn(Struct, frozen=True, gc=False):
    """Take one turn of the model. `round` counts from 0; the turn that sums up has the number after the last round.

    Two turns have the same number if the first one made no round: it was silent, or did not end the run. Drivers that
    store turns by their round must keep the two apart.
    """

    round: int
    request: Request


class RunTools(Struct, frozen=True, gc=False):
    """Run the calls of one turn: at least one, each with an id that no other call of the run has."""

    round: int
    calls: tuple[Call, ...]


class Stop(Struct, frozen=True, gc=False):
    """The answer to an effect that cancels the run."""


STOP: Final = Stop()
RunEffect: TypeAlias = TakeTurn | RunTools
RunAnswer: TypeAlias = Turn | tuple[Result, ...] | Stop | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. `kept` is its final message with all rounds, `reason` says in words why the run ended so."""

    status: Status
    kept: Compact
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    failure: Failure | None = None
    before: tuple[Message, ...] = field(default=(), compare=False)
    """The conversation up to the task, if a client has kept it."""

    @property
    def text(self) -> str:
        """Return the final text."""
        return "".join(part.text for part in self.kept.message.parts if isinstance(part, Text))

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the whole conversation: what was asked, the rounds, the final text. Another run can continue it."""
        said = (self.kept,) if self.kept.rounds or self.kept.message.parts else ()
        return (*self.before, *expand(said))


RunProgram: TypeAlias = Generator[RunEffect, RunAnswer, Ending]


def run_task(task: Task) -> RunProgram:
    """Work on a task until it is done, its rounds are used up, it is cancelled, or a turn fails."""
    return _Run(task).work()


class _Run:
    def __init__(self, task: Task) -> None:
        self._task: Final = task
        self._rounds: Final[list[Round]] = []
        self._calls: Final = RunCalls(task.request.messages, task.ending)
        self._governor: Final = Governor()
        self._usage = Usage()
        self._names: Final = [name for name in task.reviewed if name not in task.ending]
        self._asides: Final[dict[int, tuple[Message, ...]]] = {}
        """Text of the model that did not end the run and the reply to it, by the number of rounds before them."""
        self._left: list[tuple[str, ...]] = []
        """What each review found."""

    def work(self) -> RunProgram:
        while len(self._rounds) < self._task.rounds:
            turn = yield from self._turn(self._request())
            if turn is None or turn.failure is not None:
                return self._broken(turn)
            called = self._calls.of(turn)
            # Silence is not an answer: a run that ended here would be done with nothing to show.
            if not called and not turn.text.strip():
                return (yield from self._sum_up(_SILENT))
            if not called:
                if reply := self._review():
                    self._put_aside(turn, reply)
                    continue
                if self._wrote_calls(turn):
                    return (yield from self._sum_up(_WROTE_CALLS))
                return self._end(Status.DONE, _said(turn), _cut(turn))
            called = self._reviewed(called)
            if (results := (yield from self._results(called))) is None:
                return self._end(Status.CANCELLED, _said(turn), "cancelled while tools ran")
            self._keep(turn, called, results)
            if (last := self._last_word(called, results)) is not None:
                return self._end(Status.DONE, last, "")
            if self._governor.circles:
                return (yield from self._sum_up(_CIRCLES))
        return (yield from self._sum_up(f"its {self._task.rounds} rounds were used up"))

    # ---------------------------------------------------------------- the review of an ending

    def _review(self) -> str:
        """Return what to tell the model instead of ending; empty if the run may end.

        What was named before and is still left is not named again: the model was told, and ends all the same.
        """
        if not self._names or len(self._left) == _MOST_REVIEWS:
            return ""
        task = task_of(self._task.request.messages)
        left = unfinished(task, self._names, self._rounds)
        if not left or left in self._left:
            return ""
        self._left.append(left)
        return _LEFT.format(left="\n".join(f"- {each}" for each in left), task=task)

    def _reviewed(self, called: tuple[CallOrError, ...]) -> tuple[CallOrError, ...]:
        """Return the calls; if they would end the run and something is left, with that as their error."""
        ends = all(call.name in self._task.ending and error is None for call, error in called)
        if not ends or not (reply := self._review()):
            return called
        return tuple((call, Result(call.id, (Text(reply),), call.name, is_error=True)) for call, _ in called)

    def _wrote_calls(self, turn: Turn) -> bool:
        return bool(self._task.reviewed) and spoken(turn.text, self._task.reviewed)[1]

    def _put_aside(self, turn: Turn, reply: str) -> None:
        number = len(self._rounds)
        # Markup is left out: a small model that sees it in the conversation writes it again.
        said = () if self._wrote_calls(turn) else (Message(Role.ASSISTANT, _said(turn)),)
        self._asides[number] = (*self._asides.get(number, ()), *said, Message(Role.USER, (Text(reply),)))

    # ---------------------------------------------------------------- effects

    def _turn(self, request: Request) -> Generator[RunEffect, RunAnswer, Turn | None]:
        answer = yield TakeTurn(len(self._rounds), request)
        if answer is STOP:
            return None
        if not isinstance(answer, Turn):
            raise TypeError(f"TakeTurn was answered with {type(answer).__name__}")
        self._usage = self._usage.plus(answer.usage)
        return answer

    def _results(self, called: tuple[CallOrError, ...]) -> Generator[RunEffect, RunAnswer, tuple[Result, ...] | None]:
        """Run the calls that may run; return the results of all calls in their order, or None if cancelled."""
        calls = tuple(call for call, error in called if error is None)
        answer = (yield RunTools(len(self._rounds), calls)) if calls else ()
        if answer is STOP:
            return None
        given = iter(_checked(calls, answer))
        return tuple(next(given) if error is None else error for _, error in called)

    def _sum_up(self, why: str) -> RunProgram:
        """Ask for an answer in words; calls in it are not run, and markup of calls is no answer: it is asked for again.

        Small models write the next call instead of a summary, and without tools it arrives as text.
        """
        request = self._request()
        asked = replace(request, messages=(*request.messages, Message(Role.USER, (Text(_NO_MORE),))), choice=_NO_CALLS)
        turn = yield from self._turn(asked)
        if turn is not None and turn.failure is None and self._wrote_calls(turn):
            more = Message(Role.ASSISTANT, _said(turn)), Message(Role.USER, (Text(_NO_MARKUP),))
            turn = yield from self._turn(replace(asked, messages=(*asked.messages, *more)))
        if turn is None or turn.failure is not None:
            return self._broken(turn)
        if self._wrote_calls(turn):
            return self._summed_up_without_calls(turn, why)
        if not turn.text.strip():
            return self._end(Status.FAILED, _said(turn), f"{why}; asked to sum up, the model said nothing")
        return self._end(Status.SUMMED_UP, _said(turn), "; ".join(filter(None, (why, _cut(turn)))))

    def _summed_up_without_calls(self, turn: Turn, why: str) -> Ending:
        """Return the ending of a run whose summary has calls in it, although it was asked for twice."""
        words, _ = spoken(turn.text, self._task.reviewed)
        if not words:
            return self._end(Status.FAILED, (), f"{why}; asked twice to sum up, the model wrote tool calls instead")
        return self._end(Status.SUMMED_UP, (Text(words),), f"{why}; tool calls in its summary were cut out")

    # ---------------------------------------------------------------- what is kept

    def _request(self) -> Request:
        request, asides = self._task.request, self._asides
        messages = [*request.messages, *asides.get(0, ())]
        for number, each in enumerate(self._rounds, start=1):
            messages += (*expand_rounds((each,)), *asides.get(number, ()))
        return replace(request, messages=tuple(messages))

    def _keep(self, turn: Turn, called: tuple[CallOrError, ...], results: tuple[Result, ...]) -> None:
        calls = tuple(call for call, _ in called)
        self._rounds.append(Round(_said(turn), calls, self._governor.seen(calls, results)))

    def _last_word(self, called: tuple[CallOrError, ...], results: tuple[Result, ...]) -> tuple[Text, ...] | None:
        """Return the final text if a call ended the run; a call that failed does not end it."""
        ended = [
            result
            for (call, _), result in zip(called, results, strict=True)
            if call.name in self._task.ending and not result.is_error
        ]
        return tuple(piece for piece in ended[-1].content if isinstance(piece, Text)) if ended else None

    def _broken(self, turn: Turn | None) -> Ending:
        if turn is None or turn.failure is None:
            return self._end(Status.CANCELLED, (), "cancelled while the model wrote")
        return self._end(Status.FAILED, _said(turn), turn.failure.message, turn.failure)

    def _end(
        self, status: Status, parts: tuple[Text | Reasoning, ...], reason: str, failure: Failure | None = None
    ) -> Ending:
        kept = Compact(Message(Role.ASSISTANT, parts), tuple(self._rounds))
        return Ending(status, kept, reason, self._usage, failure)


def _checked(calls: tuple[Call, ...], answer: RunAnswer) -> tuple[Result, ...]:
    """Return the results if they are those of the calls, in their order.

    Raises TypeError or ValueError otherwise: a faulty driver would pair a call with the result of another one, and the
    model could not notice.
    """
    if not isinstance(answer, tuple):
        raise TypeError(f"RunTools was answered with {type(answer).__name__}")
    wanted, given = [call.id for call in calls], [result.call_id for result in answer]
    if wanted != given:
        raise ValueError(f"RunTools was answered with results of the calls {given}, expected those of {wanted}")
    return answer


def _said(turn: Turn) -> tuple[Text | Reasoning, ...]:
    return tuple(part for part in turn.parts if isinstance(part, Text | Reasoning))


def _cut(turn: Turn) -> str:
    """Return why the final text is truncated; empty if it is not."""
    return "" if turn.stop is None else _CUT.get(turn.stop, "")


class RunCalls:
    """Returns the calls of one run's turns, with ids that are unique in the run.

    Turn(Text, Call(id "1"), CallRejected)   ->   (Call(id "1"), None), (Call(id "rejected_0"), its error)

    People approve a call by its id, and results are paired with calls by it. Servers use the same id twice, so such ids
    are changed.

    A rejected call is in the history too, with a result that says why. Without it, a turn whose calls were all rejected
    ended the run as done if there were words beside them.

    A call that would end the run, beside calls whose results the model has not seen, gets an error: it is a guess, seen
    in four of six runs of a small model.
    """

    def __init__(self, messages: Iterable[Message], ending: Container[str] = ()) -> None:
        """Take the messages before the run, whose ids are not used again, and the tools whose call ends the run."""
        self._ending: Final = ending
        parts = (part for message in messages for part in message.parts)
        self._taken: Final = {part.id for part in parts if isinstance(part, Call)}

    def of(self, turn: Turn) -> tuple[CallOrError, ...]:
        """Return the calls of a turn, in its order."""
        called = tuple(self._called(turn))
        if all(call.name in self._ending for call, _ in called):
            return called
        return tuple(
            self._early(call) if call.name in self._ending and not error else (call, error) for call, error in called
        )

    def _early(self, call: Call) -> CallOrError:
        return call, Result(call.id, (Text(_TOO_EARLY),), call.name, is_error=True)

    def _called(self, turn: Turn) -> Iterator[CallOrError]:
        for part in turn.parts:
            if isinstance(part, Call):
                id = self._fresh(part.id)
                yield (part if id == part.id else replace(part, id=id)), None
            elif isinstance(part, CallRejected):
                yield self._rejected(part)

    def _rejected(self, part: CallRejected) -> CallOrError:
        name, arguments = part.complaint.name or NAMELESS, rejected_arguments(part)
        call = Call(self._fresh("rejected"), name, arguments, raw=part.raw)
        return call, replace(error_result(part.complaint, call.id), name=call.name)

    def _fresh(self, wanted: str) -> str:
        """Return the wanted id if no other call has it, else one with a number appended."""
        id, number = wanted, 0
        while not id or id in self._taken:
            id, number = f"{wanted or 'call'}_{number}", number + 1
        self._taken.add(id)
        return id


def rejected_arguments(rejected: CallRejected) -> str:
    """Return the arguments that the model wrote in a rejected call, as JSON text; `{}` if they cannot be read.

    `raw` is the arguments of a native call, or the whole markup of a call in text, in which they are below one of the
    keys that dialects use.
    """
    raw = rejected.raw
    text = raw if parse_object(raw) else raw[raw.find("{") : raw.rfind("}") + 1]
    written = parse_object(text)
    if rejected.complaint.name in (written.get("name"), written.get("tool")):
        inner = next((found for key in _ARGUMENTS if isinstance(found := written.get(key), dict)), None)
        return dump(inner) if inner is not None else "{}"
    return text if written else "{}"

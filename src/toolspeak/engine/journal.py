"""The journal of a run: the answers to its effects as JSON, and the replay of a run from them (RUN-3).

entries = [turn_json(turn), [result_json(result), …], turn_json(turn), …]
replay(task, answered)      run the program again over the stored answers; no turn and no tool runs twice
stands(task, answered)      the effect that a run waits for, and what it has done

It is plain JSON of lists and objects: the value that `json.loads` returns is equal to the value that was written. There
is no type marker that could name a class of the caller's choice (LangChain's CVE-2025-68664): `kind` selects from the
fixed table below, and nothing else is instantiated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, TypeVar

import msgspec

from toolspeak.engine.agent import STOP, Ending, RunAnswer, RunEffect, RunProgram, Task, run_task
from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.event import CallRejected, Discarded, StopReason, Usage, Why
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import (
    Call,
    Image,
    Message,
    Opaque,
    Reasoning,
    Result,
    ResultPart,
    Role,
    Text,
    ToolReference,
    Vendor,
)
from toolspeak.ir.round import Compact, Round
from toolspeak.ir.turn import Turn, TurnPart

_KIND = "kind"
_KINDS: Final[Mapping[str, type]] = {
    "text": Text,
    "reasoning": Reasoning,
    "image": Image,
    "call": Call,
    "reference": ToolReference,
    "opaque": Opaque,
    "rejected": CallRejected,
    "discarded": Discarded,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Replayed:
    """The state after a replay: the run has ended, or waits for the answer to an effect."""

    program: RunProgram
    waiting: RunEffect | None
    ending: Ending | None


def replay(task: Task, answered: Callable[[RunEffect], RunAnswer]) -> Replayed:
    """Replay a task. `answered` returns the stored answer to an effect, or None if there is none yet."""
    program = run_task(task)
    try:
        effect = next(program)
        while (answer := answered(effect)) is not None:
            effect = program.send(answer)
    except StopIteration as stop:
        return Replayed(program, None, stop.value)
    return Replayed(program, effect, None)


def stands(task: Task, answered: Callable[[RunEffect], RunAnswer]) -> tuple[RunEffect | None, Compact]:
    """Return the effect that a run waits for (None if it has ended), and what it would keep if it were stopped now."""
    replayed = replay(task, answered)
    if replayed.ending is not None:
        return None, replayed.ending.kept
    # A replayed program is a copy of its own, so stopping it does not touch the real run. Its ending says what the run
    # has done so far, in the one place that knows how to put that together.
    try:
        replayed.program.send(STOP)
    except StopIteration as stop:
        return replayed.waiting, stop.value.kept
    raise AssertionError("a run that is stopped ends")


def turn_json(turn: Turn) -> JsonObject:
    """Write a turn."""
    written: JsonObject = {"parts": [_part_json(part) for part in turn.parts], "usage": _plain(turn.usage)}
    if turn.stop is not None:
        written["stop"] = turn.stop.value
    if turn.stop_sequence:
        written["stop_sequence"] = turn.stop_sequence
    if turn.failure is not None:
        written["failure"] = _plain(turn.failure)
    return written


def turn_from(written: JsonObject) -> Turn:
    """Read a turn."""
    stop, failure = written.get("stop"), written.get("failure")
    return Turn(
        tuple(_read_part(part) for part in _rows(written["parts"])),
        None if stop is None else StopReason(str(stop)),
        msgspec.convert(written["usage"], Usage),
        str(written.get("stop_sequence", "")),
        None if failure is None else msgspec.convert(failure, Failure),
    )


def result_json(result: Result) -> JsonObject:
    """Write a tool's result."""
    written: JsonObject = {"call_id": result.call_id, "name": result.name}
    written["content"] = [_part_json(piece) for piece in result.content]
    if result.is_error:
        written["is_error"] = True
    if result.vendor is not None:
        written["vendor"] = _plain(result.vendor)
    return written


def result_from(written: JsonObject) -> Result:
    """Read a tool's result."""
    vendor = written.get("vendor")
    content: tuple[ResultPart, ...] = tuple(_read_part(piece) for piece in _rows(written["content"]))
    return Result(
        str(written["call_id"]),
        content,
        str(written["name"]),
        bool(written.get("is_error", False)),
        None if vendor is None else _vendor(vendor),
    )


def message_json(message: Message) -> JsonObject:
    """Write a message."""
    parts: list[Json] = [
        _part_json(part) if not isinstance(part, Result) else _result_part(part) for part in message.parts
    ]
    written: JsonObject = {"role": message.role.value, "parts": parts}
    if message.vendor is not None:
        written["vendor"] = _plain(message.vendor)
    return written


def message_from(written: JsonObject) -> Message:
    """Read a message."""
    parts, vendor = tuple(_read_any(part) for part in _rows(written["parts"])), written.get("vendor")
    return Message(Role(str(written["role"])), parts, None if vendor is None else _vendor(vendor))


def compact_json(kept: Compact) -> JsonObject:
    """Write a kept message with its rounds."""
    rounds: list[Any] = [
        {
            "before": [_part_json(part) for part in each.before],
            "calls": [_part_json(call) for call in each.calls],
            "results": [result_json(result) for result in each.results],
        }
        for each in kept.rounds
    ]
    return {**message_json(kept.message), "rounds": rounds}


def compact_from(written: JsonObject) -> Compact:
    """Read a kept message with its rounds."""
    rounds = tuple(
        Round(
            tuple(_read_part(part) for part in _rows(each["before"])),
            tuple(_read_part(call) for call in _rows(each["calls"])),
            tuple(result_from(result) for result in _rows(each["results"])),
        )
        for each in _rows(written.get("rounds", []))
    )
    return Compact(message_from(written), rounds)


_RESULT = "result"


def _result_part(result: Result) -> JsonObject:
    return {_KIND: _RESULT, **result_json(result)}


def _read_any(written: JsonObject) -> Any:  # noqa: ANN401 # whichever part it was
    return result_from(written) if written[_KIND] == _RESULT else _read_part(written)


def _part_json(part: TurnPart | ResultPart) -> JsonObject:
    return {_KIND: _NAMES[type(part)], **_plain(part)}


def _read_part(written: JsonObject) -> Any:  # noqa: ANN401 # whichever part it was
    fields = {name: value for name, value in written.items() if name != _KIND}
    return _read(_KINDS[str(written[_KIND])], fields)


def _plain(value: object) -> JsonObject:
    """Return a value's fields as JSON, without those that have their default: most fields of most parts do."""
    usual = _USUAL[type(value)]
    fields: dict[str, Json | tuple[Json, ...]] = msgspec.to_builtins(value)
    said = {name: field for name, field in fields.items() if getattr(value, name) != usual[name]}
    return {name: list(field) if isinstance(field, tuple) else field for name, field in said.items()}


def _read(kind: Callable[..., T], fields: JsonObject) -> T:
    """Make a value from its fields; fields that are not there get their default."""
    return kind(**{name: _READERS[name](field) if name in _READERS else field for name, field in fields.items()})


def _vendor(row: Any) -> Vendor:  # noqa: ANN401 # JSON that we have written
    return _read(Vendor, row)


_READERS: Final[Mapping[str, Callable[[Any], object]]] = {
    "fixes": lambda rows: tuple(_read(Fix, row) for row in rows),
    "complaint": lambda row: _read(Complaint, {"name": None, **row}),
    "problem": Problem,
    "why": Why,
    "vendor": _vendor,
}
"""Readers of the fields that are not plain JSON."""


_USUAL: Final[Mapping[type, Mapping[str, object]]] = {
    kind: {each.name: each.default for each in signature(kind).parameters.values()}
    for kind in (*_KINDS.values(), Usage, Failure, Vendor)
}
"""The fields of each kind with their defaults; a field without a default is always written."""


def _rows(value: Any) -> list[JsonObject]:  # noqa: ANN401 # JSON that we have written
    return list(value)

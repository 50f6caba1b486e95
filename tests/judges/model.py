r"""The scripted model: the name of the model is the scenario that it plays.

    one, parallel, interleaved, unicode   first round: thinks, says a little, calls `get_weather`
                                          second round: quotes what each call was given and each result said
    error                                 fails before the first byte
    midstream                             fails after some text

The arguments come in pieces of three characters, so that escapes and pairs of surrogates are cut in the middle.
U+2028 is in them because clients that cut lines with Python's `splitlines` must not find one there.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Part, Reasoning, Result, part_text
from toolspeak.ir.request import Request

Batches: TypeAlias = Sequence[Sequence[Event]]

ARGUMENTS = {
    "one": ['{"city": "Oslo"}'],
    "parallel": ['{"city": "Oslo"}', '{"city": "Bergen"}'],
    "interleaved": ['{"city": "Oslo"}', '{"city": "Bergen"}'],
    "unicode": [r'{"city": "Tromsø", "note": "say \"hei\" \ud83c\udf26 ☃\nto all ' + '🌦\u2028"}'],
}
THOUGHT = ("I have to ", "look that up.")
SIGNATURE = "c2lnbmVk"  # base64: Google's clients decode it
OPENING = ("Let me ", "look. ")
REFUSED = Failure(FailureKind.INVALID_REQUEST, "the scripted model refuses", 400)
BROKEN = Failure(FailureKind.TRANSIENT, "the scripted model broke down", 503)
USAGE = Usage(input_tokens=21, output_tokens=13, reasoning_tokens=5)


def batches(request: Request, stamp: str) -> Batches:
    """Play one turn."""
    if request.model == "error":
        return [[Failed(REFUSED)]]
    if request.model == "midstream":
        return [*_opening(), [Failed(BROKEN)]]
    if any(isinstance(part, Result) for part in _parts(request)):
        return _quoting(request)
    return [*_opening(), *_calls(request.model, stamp), [Finished(StopReason.CALLS, USAGE)]]


def faults_of(request: Request) -> Iterator[str]:
    """Say what a client cannot have meant, so that the wire must have read it wrong."""
    if "get_weather" not in [tool.name for tool in request.tools]:
        yield f"the tool is not offered: {request.tools}"
    calls = {part.id: part for part in _parts(request) if isinstance(part, Call)}
    given = [json.loads(call.arguments) for call in calls.values()]
    if calls and given != [json.loads(arguments) for arguments in ARGUMENTS[request.model]]:
        yield f"the calls of the history have other arguments: {given}"
    for part in _parts(request):
        if isinstance(part, Result) and part.call_id not in calls:
            yield f"a result without its call: {part}"
        if isinstance(part, Reasoning) and part.signature not in {"", SIGNATURE}:
            yield f"a signature was changed on its way: {part}"


def _opening() -> Batches:
    first, last = THOUGHT
    return [[ReasoningDelta(first)], [ReasoningDelta(last, SIGNATURE)], *([TextDelta(text)] for text in OPENING)]


def _calls(scenario: str, stamp: str) -> Batches:
    calls = [_call(f"call_{stamp}x{number}", arguments) for number, arguments in enumerate(ARGUMENTS[scenario])]
    if scenario == "interleaved":
        return [batch for together in zip_longest(*calls) for batch in together if batch is not None]
    return [batch for call in calls for batch in call]


def _call(id: str, arguments: str) -> Batches:
    pieces = [[ArgsDelta(id, piece)] for piece in _cut(arguments, 3)]
    return [[CallStarted(id, "get_weather")], *pieces, [CallEnded(id)]]


def _quoting(request: Request) -> Batches:
    calls = {part.id: part for part in _parts(request) if isinstance(part, Call)}
    results = [part for part in _parts(request) if isinstance(part, Result)]
    text = "".join(f"{_asked(calls[result.call_id])} said <{_said(result)}>. " for result in results)
    return [*([TextDelta(piece)] for piece in _cut(text, 7)), [Finished(StopReason.END, USAGE)]]


def _asked(call: Call) -> str:
    return f"{call.name}({json.loads(call.arguments)['city']})"


def _said(result: Result) -> str:
    return "".join(part_text(part) for part in result.content)


def _cut(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def _parts(request: Request) -> Iterator[Part]:
    for message in request.messages:
        yield from message.parts

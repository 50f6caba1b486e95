"""The simulated upstream's bytes: a vendor's answer, cut anywhere, and broken as networks and servers break it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from testkit.golden import CASES
from testkit.simulation.model import Saying
from testkit.vendor_answers import STREAMS, WHOLES, Answer

FAILURES: Final = CASES / "failures.jsonl"
FINE: Final = 120
"""Bytes of the stretch that comes in the smallest chunks."""
BROKEN: Final = "the model fell over"
FAULTS: Final = {
    "": 55,
    "reset": 8,
    "http error": 8,
    "error object": 4,
    "lying finish": 5,
    "no finish": 3,
    "doubled end": 4,
    "endless": 3,
    "silence": 4,
}
LOSES: Final = 0.15
"""How often arguments are lost, where calls have some that come in deltas."""
_ENDS: Final = {
    "openai_chat": '"finish_reason": "',
    "openai_responses": "event: response.completed",
    "anthropic": '"stop_reason": "',
    "gemini": '"finishReason"',
    "ollama": '"done": true',
}
"""Text that is in the first frame with the end, and in no frame before it."""
_REASONS: Final = {
    "openai_chat": "finish_reason",
    "openai_responses": "status",
    "anthropic": "stop_reason",
    "gemini": "finishReason",
    "ollama": "done_reason",
}
_LIES: Final = {
    "openai_chat": (("tool_calls", "stop"), ("stop", "tool_calls"), ("tool_calls", "function_call"), ("stop", "")),
    "anthropic": (("tool_use", "end_turn"), ("end_turn", "tool_use"), ("end_turn", "pause_turn")),
    "gemini": (("STOP", "MALFORMED_FUNCTION_CALL"), ("STOP", "OTHER"), ("STOP", "SAFETY")),
    "ollama": (("stop", "load"), ("stop", "tool_calls")),
    "openai_responses": (("completed", "in_progress"),),
}
_ARGUMENTS: Final = {"openai_chat": '"function": {"arguments": ', "anthropic": "input_json_delta"}


@dataclass(frozen=True)
class Delivery:
    """How an answer comes. `then` is what follows the bytes: the end, a frame again and again, or nothing at all."""

    fault: str
    status: int
    data: bytes
    then: str = "end"
    again: bytes = b""
    whole: bool = True
    """Everything that the model wrote is there, and its end."""
    told_end: bool = True
    """The answer's end can be known from the bytes; without it, no success."""


def deliver(wire: str, said: Saying, dice: Random, *, stream: bool) -> Delivery:
    """Write an answer as the vendor's server would, and break it or not."""
    fault = dice.choices(list(FAULTS), list(FAULTS.values()))[0]
    if said.calls and stream and wire in _ARGUMENTS and dice.random() < LOSES:
        fault = "lost arguments"
    if fault == "http error":
        status, body = dice.choice(http_errors())
        return Delivery(fault, status, body, whole=False, told_end=False)
    if fault == "error object" and stream:
        return Delivery(fault, 200, STREAMS[wire](_answer(said, BROKEN)).encode(), whole=False, told_end=False)
    if not stream:
        return _whole(wire, said, fault, dice)
    text = STREAMS[wire](_answer(said))
    return _streamed(wire, text, fault, dice)


def pieces(data: bytes, dice: Random) -> Iterator[bytes]:
    """Cut bytes anywhere; sometimes a stretch of them almost byte by byte."""
    largest = dice.choice((60, 400, 3000))
    fine = dice.randrange(len(data) + 1) if dice.random() < 0.4 else len(data)
    at = 0
    while at < len(data):
        size = dice.randint(1, 3 if fine <= at < fine + FINE else largest)
        yield data[at : at + size]
        at += size


@cache
def http_errors() -> tuple[tuple[int, bytes], ...]:
    """Return the errors that real servers have answered with."""
    cases = map(json.loads, FAILURES.read_text().splitlines())
    errors = [case for case in cases if case["group"] == "upstream_error" and case["http_status"] >= 400]
    return tuple((case["http_status"], case["raw_output"].encode()) for case in errors)


def _answer(said: Saying, error: str = "") -> Answer:
    calls = tuple((call.id, call.name, json.loads(call.arguments)) for call in said.calls)
    return Answer(said.text, said.reasoning, "", calls, said.cut, error)


def _whole(wire: str, said: Saying, fault: str, dice: Random) -> Delivery:
    text = json.dumps(WHOLES[wire](_answer(said)))
    if fault == "lying finish":
        return Delivery(fault, 200, _lied(wire, text, dice).encode(), whole=False)
    if fault in ("reset", "no finish", "error object"):
        return Delivery("reset", 200, text.encode()[: dice.randrange(len(text) - 1)], whole=False, told_end=False)
    if fault == "silence":
        return Delivery(fault, 200, b"", "silence", whole=False, told_end=False)
    return Delivery("", 200, text.encode())


def _streamed(wire: str, text: str, fault: str, dice: Random) -> Delivery:
    end = _end_of(wire, text)
    if fault in ("reset", "silence"):
        data = text.encode()
        at = dice.randrange(len(data) + 1)
        before = at < len(text[:end].encode())
        then = "silence" if fault == "silence" else "end"
        return Delivery(fault, 200, data[:at], then, whole=False, told_end=not before)
    if fault == "no finish":
        return Delivery(fault, 200, text[:end].encode(), whole=False, told_end=False)
    if fault == "lying finish":
        return Delivery(fault, 200, (text[:end] + _lied(wire, text[end:], dice)).encode(), whole=False)
    if fault == "lost arguments":
        return Delivery(fault, 200, _without_arguments(wire, text, dice).encode(), whole=False)
    if fault == "doubled end":
        return Delivery(fault, 200, (text + _frames(wire, text)[-1]).encode())
    if fault == "endless":
        return _endless(wire, dice)
    return Delivery("", 200, text.encode())


def _endless(wire: str, dice: Random) -> Delivery:
    """Begin an answer, and repeat the same text, reasoning or arguments forever."""
    words = "Well, and more and "
    argued = Answer(calls=(("call_endless", "search", {"q": "xxand more"}),))
    answers = (Answer(words), Answer(words), Answer(reasoning=words), argued if wire in _ARGUMENTS else Answer(words))
    frames = _frames(wire, STREAMS[wire](dice.choice(answers)))
    at = next(number for number, frame in enumerate(frames) if '"and"' in frame)
    data, again = "".join(frames[: at + 1]).encode(), frames[at].encode()
    return Delivery("endless", 200, data, "again", again, whole=False, told_end=False)


def _frames(wire: str, text: str) -> list[str]:
    mark = "\n" if wire == "ollama" else "\n\n"
    return [frame + mark for frame in text.split(mark) if frame]


def _end_of(wire: str, text: str) -> int:
    """Find the start of the frame that has this end."""
    mark = _ENDS[wire]
    at = text.find(mark)
    if at < 0:
        at = text.find("event: response.incomplete")
    before = text.rfind("\n" if wire == "ollama" else "\n\n", 0, at)
    return before + (1 if wire == "ollama" else 2) if before >= 0 else 0


def _lied(wire: str, text: str, dice: Random) -> str:
    """Report a different end, or an undocumented one."""
    told, lie = dice.choice(_LIES[wire])
    return text.replace(f'"{_REASONS[wire]}": "{told}"', f'"{_REASONS[wire]}": "{lie}"')


def _without_arguments(wire: str, text: str, dice: Random) -> str:
    """Lose the last deltas of the last call's arguments, although the end comes."""
    frames = _frames(wire, text)
    places = [number for number, frame in enumerate(frames) if _ARGUMENTS[wire] in frame]
    lost = set(places[-dice.randint(1, 3) :])
    return "".join(frame for number, frame in enumerate(frames) if number not in lost)

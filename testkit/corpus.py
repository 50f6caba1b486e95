"""Reads a golden case, from text or from a wire, and compares the result with what the case expects (P1, P2)."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, cast

from testkit.golden import Case
from toolspeak import wires
from toolspeak.dialects import native_attempt
from toolspeak.dialects.core.output import counted_ids
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, fold, split, unfold
from toolspeak.text.sse import SseDecoder, sse_event
from toolspeak.text.strict import parse
from toolspeak.toolset.check import CallChecker
from toolspeak.toolset.toolset import ToolSet


def read(case: Case, pieces: Iterable[str]) -> list[Event]:
    """Read a case's text in these chunks."""
    reader = case.dialect.reader(case.tools, options=case.options)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.finish()]


def read_native(case: Case) -> list[Event]:
    """Read a case that is native deltas: through the wire's decoder, then judged as calls read from text are."""
    request = Request("m", (), tuple(case.tools), stream=True)
    decoder = wires.load("openai_chat").new_decoder(request, counted_ids())
    body = b"".join(native_frames(case))
    turn = fold([*decoder.feed(body), *decoder.finish()])
    tools = ToolSet.of(case.tools)
    checker = CallChecker(tools, case.options.choice, counted_ids())
    events: list[Event] = []
    for event in unfold(turn):
        if isinstance(event, CallStarted):
            call = next(call for call in turn.calls if call.id == event.id)
            checked = checker.check(native_attempt(call, tools), "")
            events += split((checked,) if checked else ())
        elif not isinstance(event, ArgsDelta | CallEnded):
            events.append(event)
    return events


def native_frames(case: Case) -> Iterator[bytes]:
    """Write the deltas as a server sends them, with an end, unless the case is about a broken connection."""
    finished = False
    for delta in case.deltas or []:
        body = cast("dict[str, Any]", {"tool_calls": delta} if isinstance(delta, list) else delta)
        reason = body.get("finish_reason")
        finished = finished or reason is not None
        yield sse_event(json.dumps({"choices": [{"index": 0, "delta": body, "finish_reason": reason}]}))
    if not finished and not case.disconnected:
        yield sse_event("[DONE]")


def deltas_in(pieces: Iterable[str]) -> list[Json]:
    """Read the deltas out of a server's SSE stream."""
    decoder = SseDecoder()
    frames = [frame for piece in pieces for frame in decoder.feed(piece.encode())] + decoder.finish()
    bodies = [json.loads(frame.data) for frame in frames if frame.data != "[DONE]"]
    return [body["choices"][0]["delta"] for body in bodies]


def differences(case: Case, turn: Turn) -> list[str]:
    """Return the differences to what the case expects."""
    calls = [{"name": call.name, "arguments": parse(call.arguments)} for call in turn.calls]
    invalid = [{"name": complaint.name, "error": complaint.problem.value} for complaint in turn.complaints]
    wrong: list[str] = []
    if calls != case.calls:
        wrong.append(f"calls {calls} != {case.calls}")
    if case.text is not None and turn.text.strip() != case.text.strip():
        wrong.append(f"text {turn.text[:300]!r} != {case.text[:300]!r}")
    if case.reasoning is not None and turn.reasoning.strip() != case.reasoning.strip():
        wrong.append(f"reasoning {turn.reasoning!r} != {case.reasoning!r}")
    if case.invalid is not None and invalid != case.invalid:
        wrong.append(f"invalid {invalid} != {case.invalid}")
    return wrong


def ungrounded(raw: str, turn: Turn) -> list[str]:
    """Return the strings in delivered arguments that the model did not write (P2)."""
    once = unescaped(raw)
    readings = (raw, once, unescaped(once), raw.replace("\\/", "/"))
    leaves = chain.from_iterable(strings_in(parse(call.arguments)) for call in turn.calls)
    return [leaf for leaf in leaves if not any(leaf in reading for reading in readings)]


_ESCAPE = re.compile(
    r"""\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(["'\\/bfnrt]))"""
)
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unescaped(text: str) -> str:
    """Decode what JSON would decode inside strings, and leave the rest."""

    def decode(found: re.Match[str]) -> str:
        high, low, unit, char = found.groups()
        if high:
            return (int(high, 16) << 16 | int(low, 16)).to_bytes(4, "big").decode("utf-16-be")
        if unit:
            code = int(unit, 16)
            return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
        return _SIMPLE.get(char, char)

    return _ESCAPE.sub(decode, text)


def strings_in(value: Json) -> Iterator[str]:
    """Yield every string in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings_in(item)


def events_of(case: Case, pieces: tuple[str, ...]) -> list[Event]:
    """Read a case of any kind."""
    if case.deltas is not None:
        return read_native(case)
    if case.body == "sse":
        native = [delta for delta in deltas_in(pieces) if isinstance(delta, dict)]
        return read_native(Case(case.id, case.dialect, case.tools, "", [], deltas=native))
    return read(case, pieces)

"""What clients of Ollama get from us."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.grammar import Seen, SeenCall, read_stream, read_whole
from toolspeak import wires
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
    Why,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool, ToolKind
from toolspeak.ir.turn import fold
from toolspeak.wires import EventEncoder, Stamp
from toolspeak.wires.ollama.answer_writer import rfc3339

WIRE = wires.load("ollama")
Body = dict[str, Any]
REQUEST = Request("m:latest", (), (Tool("f"), Tool("g"), Tool("patch", kind=ToolKind.CUSTOM)), stream=True)
STAMP = Stamp("0123abc", 1_767_323_045)
BROKEN = Failure(FailureKind.TRANSIENT, "the model fell\nover", 503)
MARKS: Body = {"model": "m:latest", "created_at": "2026-01-02T03:04:05Z"}
DURATIONS: Body = {"total_duration": 0, "load_duration": 0, "prompt_eval_duration": 0, "eval_duration": 0}
END = Finished(StopReason.END, Usage(7, 5))


def new() -> EventEncoder:
    return WIRE.new_encoder(REQUEST, STAMP)


def lines(data: bytes) -> list[Body]:
    return [json.loads(line) for line in data.splitlines()]


def line(**message: object) -> Body:
    return {**MARKS, "message": {"role": "assistant", "content": "", **message}, "done": False}


def last(reason: str, prompt: int, answer: int) -> Body:
    counts = {**DURATIONS, "prompt_eval_count": prompt, "eval_count": answer}
    return {**line(), "done": True, "done_reason": reason, **counts}


def called(id_: str, name: str, arguments: str) -> list[Event]:
    return [CallStarted(id_, name), ArgsDelta(id_, arguments), CallEnded(id_)]


def one_call(index: int, id_: str, name: str, arguments: object) -> Body:
    return line(tool_calls=[{"id": id_, "function": {"index": index, "name": name, "arguments": arguments}}])


def seen(*events: Event) -> Seen:
    """Judge the stream of these events, which must say the same as the whole answer."""
    stream = read_stream("ollama", new().encode(events))
    if not stream.error:
        whole = read_whole("ollama", WIRE.encode_turn(REQUEST, STAMP, fold(events)))
        assert (whole.text, whole.reasoning, whole.calls) == (stream.text, stream.reasoning, stream.calls)
        assert (whole.stop, whole.usage) == (stream.stop, stream.usage)
    return stream


# ---------------------------------------------------------------- order and form


def test_an_answer_is_one_object_per_line_in_the_events_order_wire3_wire7() -> None:
    data = new().encode(
        [
            ReasoningDelta("Hm. "),
            TextDelta("It is "),
            TextDelta("cold."),
            *called("a", "f", '{"city": "Oslo"}'),
            *called("b", "g", ""),
            END,
        ]
    )
    assert lines(data) == [
        line(thinking="Hm. "),
        line(content="It is "),
        line(content="cold."),
        one_call(0, "a", "f", {"city": "Oslo"}),
        one_call(1, "b", "g", {}),
        last("stop", 7, 5),
    ]
    assert read_stream("ollama", data).order == ("reasoning", "text", "call", "call")


def test_a_whole_answer_is_one_object_wire4() -> None:
    events: list[Event] = [
        ReasoningDelta("Hm."),
        TextDelta("Cold."),
        *called("a", "f", '{"x": 1}'),
        *called("b", "g", "{}"),
        END,
    ]
    calls: list[Body] = [
        {"id": "a", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
        {"id": "b", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    message: Body = {"role": "assistant", "content": "Cold.", "thinking": "Hm.", "tool_calls": calls}
    body = WIRE.encode_turn(REQUEST, STAMP, fold(events))
    assert json.loads(body) == {**last("stop", 7, 5), "message": message}
    seen(*events)


def test_each_piece_leaves_with_its_event() -> None:
    encoder = new()
    assert lines(encoder.encode([TextDelta("a")])) == [line(content="a")]
    assert encoder.encode([CallStarted("a", "f")]) == b""
    assert encoder.encode([ArgsDelta("a", "{}")]) == b""
    assert lines(encoder.encode([CallEnded("a")])) == [one_call(0, "a", "f", {})]
    assert lines(encoder.encode([END])) == [last("stop", 7, 5)]


def test_empty_pieces_and_signatures_and_what_is_set_aside_write_nothing() -> None:
    rejected = CallRejected(Complaint(Problem.UNKNOWN_TOOL, "x"), "<x>")
    events = [TextDelta(""), ReasoningDelta("", "sig"), rejected, Discarded(Why.DEBRIS, "</x>")]
    assert new().encode(events) == b""
    assert seen(*events, END).order == ()


def test_what_is_said_while_a_call_is_open_comes_behind_it() -> None:
    encoder = new()
    assert encoder.encode([CallStarted("a", "f"), TextDelta("Meanwhile."), ReasoningDelta("Hm.")]) == b""
    assert lines(encoder.encode([ArgsDelta("a", "{}"), CallEnded("a"), TextDelta("Then.")])) == [
        one_call(0, "a", "f", {}),
        line(content="Meanwhile."),
        line(thinking="Hm."),
        line(content="Then."),
    ]


def test_interleaved_calls_are_sent_whole_in_the_order_in_which_they_started() -> None:
    events: list[Event] = [
        CallStarted("a", "f"),
        ArgsDelta("a", '{"x"'),
        CallStarted("b", "g"),
        ArgsDelta("b", '{"y": 2}'),
        ArgsDelta("a", ": 1}"),
        CallEnded("b"),
        CallStarted("c", "f"),
        ArgsDelta("c", "{}"),
        CallEnded("c"),
        CallEnded("a"),
    ]
    encoder = new()
    assert encoder.encode(events[:-1]) == b""
    assert lines(encoder.encode(events[-1:])) == [
        one_call(0, "a", "f", {"x": 1}),
        one_call(1, "b", "g", {"y": 2}),
        one_call(2, "c", "f", {}),
    ]
    calls = (SeenCall("a", "f", {"x": 1}), SeenCall("b", "g", {"y": 2}), SeenCall("c", "f", {}))
    assert seen(*events, END).calls == calls


def test_a_call_that_never_ended_is_never_sent_and_holds_no_other_back_p3() -> None:
    cut: list[Event] = [CallStarted("a", "f"), ArgsDelta("a", '{"x'), *called("b", "g", "{}")]
    assert seen(*cut, Finished(StopReason.LENGTH)).calls == (SeenCall("b", "g", {}),)
    failed = seen(*cut, Failed(BROKEN))
    assert (failed.calls, failed.error) == ((SeenCall("b", "g", {}),), "the model fell\nover")


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (StopReason.END, "stop"),
        (StopReason.CALLS, "stop"),
        (StopReason.LENGTH, "length"),
        (StopReason.FILTER, "stop"),
    ],
)
def test_why_it_ended_and_what_it_cost(stop: StopReason, reason: str) -> None:
    answer = seen(TextDelta("a"), Finished(stop, Usage(7, 5)))
    assert (answer.stop, answer.usage) == (reason, (7, 5))


def test_an_error_in_the_middle_is_a_line_of_its_own_p6() -> None:
    data = new().encode([TextDelta("a"), Failed(BROKEN)])
    assert lines(data) == [line(content="a"), {"error": "the model fell\nover"}]
    assert read_stream("ollama", data).error == "the model fell\nover"


def test_an_error_is_all_when_nothing_came_before_it() -> None:
    assert new().encode([Failed(BROKEN)]) == b'{"error":"the model fell\\nover"}\n'


def test_an_end_in_error_is_an_error_p6() -> None:
    data = new().encode([TextDelta("a"), Finished(StopReason.ERROR)])
    assert read_stream("ollama", data).error
    assert not any(body.get("done") for body in lines(data))


def test_an_error_without_words_still_has_some_p6() -> None:
    assert new().encode([Failed(Failure(FailureKind.OTHER, ""))]) == b'{"error":"other"}\n'


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (Failure(FailureKind.NOT_FOUND, "model 'x' not found", 404), 404),
        (Failure(FailureKind.INVALID_REQUEST, "messages[0].role: …", 400), 400),
        (Failure(FailureKind.TRANSIENT, "overloaded", 0), 503),
        (Failure(FailureKind.RATE_LIMITED, "slow down", 200), 429),
        (Failure(FailureKind.DISCONNECTED, "gone"), 502),
    ],
)
def test_a_failure_is_answered_with_its_status_and_one_text_wire5(failure: Failure, status: int) -> None:
    body = WIRE.encode_failure(failure, STAMP)
    assert body.status == status
    assert json.loads(body.body) == {"error": failure.message}


def test_a_failure_of_an_upstream_is_read_wire5() -> None:
    failure = WIRE.decode_failure(404, b'{"error":"model \'x\' not found"}')
    assert failure == Failure(FailureKind.NOT_FOUND, "model 'x' not found", 404)


def test_a_failure_comes_back_as_it_was_told_wire5() -> None:
    said = WIRE.encode_failure(BROKEN, STAMP)
    assert WIRE.decode_failure(said.status, said.body) == BROKEN


# ---------------------------------------------------------------- arguments and characters


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ('{"a": 1.50,"b":1e2}', b'"arguments":{"a": 1.50,"b":1e2}}'),
        ('{\n  "a": 1\r\n}', b'"arguments":{   "a": 1  }}'),
        ("", b'"arguments":{}}'),
        ("[1]", b'"arguments":{"arguments":[1]}}'),
        ("nonsense", b'"arguments":{"arguments":"nonsense"}}'),
        ('{"a": "\ud83d"}', '"arguments":{"arguments":"{\\"a\\": \\"\ufffd\\"}"}}'.encode()),
    ],
)
def test_arguments_are_an_object_in_one_line_and_nothing_is_lost_p1(arguments: str, written: bytes) -> None:
    data = new().encode([*called("a", "f", arguments), END])
    assert written in data
    read_stream("ollama", data)


def test_a_custom_tool_is_a_function_with_one_text() -> None:
    calls = seen(*called("a", "patch", '{"input": "*** Begin Patch\\n"}'), END).calls
    assert calls == (SeenCall("a", "patch", {"input": "*** Begin Patch\n"}),)


@given(text=st.text(max_size=20), thought=st.text(max_size=20), value=st.text(max_size=20))
def test_no_character_breaks_a_line_p1(text: str, thought: str, value: str) -> None:
    arguments = json.dumps({"a": value}, ensure_ascii=False)
    answer = seen(ReasoningDelta(thought), TextDelta(text), *called("a", "f", arguments), END)
    assert (answer.reasoning, answer.text) == (thought, text)
    assert answer.calls == (SeenCall("a", "f", {"a": value}),)


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\n"])
def test_what_python_takes_for_a_line_end_is_escaped(char: str) -> None:
    data = new().encode([TextDelta(char), *called("a", "f", json.dumps({"a": char}, ensure_ascii=False)), END])
    assert len(data.decode().splitlines()) == 3
    assert lines(data)[0]["message"]["content"] == char


def test_half_a_character_is_replaced() -> None:
    assert seen(TextDelta("a\ud83d"), END).text == "a\ufffd"


def test_keep_alive_is_a_line_that_says_nothing() -> None:
    encoder = new()
    data = encoder.keep_alive() + encoder.encode([TextDelta("a")]) + encoder.keep_alive() + encoder.encode([END])
    assert lines(data)[0] == line()
    answer = read_stream("ollama", data)
    assert (answer.text, answer.order) == ("a", ("text",))


def test_what_we_write_we_read_wire2() -> None:
    events = [ReasoningDelta("Hm."), TextDelta("Cold."), *called("a", "f", '{"x": "\u2028<b>"}'), END]
    decoder = WIRE.new_decoder(REQUEST, (f"fresh{number}" for number in count()))
    turn = fold(decoder.feed(new().encode(events)) + decoder.finish())
    assert (turn.reasoning, turn.text, turn.stop, turn.usage) == ("Hm.", "Cold.", StopReason.CALLS, Usage(7, 5))
    assert [(call.id, call.name, call.arguments) for call in turn.calls] == [("a", "f", '{"x": "\u2028<b>"}')]


# ---------------------------------------------------------------- dates


@given(seconds=st.integers(-62_135_596_800, 253_402_300_799))
def test_a_date_is_the_calendar_s(seconds: int) -> None:
    assert rfc3339(seconds) == datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def test_every_day_of_four_hundred_years_has_its_date() -> None:
    start = int(datetime(1800, 1, 1, tzinfo=UTC).timestamp())
    for seconds in range(start, start + 146_098 * 86_400, 86_400):
        assert rfc3339(seconds)[:10] == datetime.fromtimestamp(seconds, UTC).date().isoformat()


def test_durations_are_what_the_gateway_has_measured() -> None:
    """Clients show tokens a second from `eval_count` and `eval_duration`, in nanoseconds."""
    times = iter((0.5, 2.5))
    encoder = WIRE.new_encoder(REQUEST, replace(STAMP, elapsed=lambda: next(times)))
    streamed = lines(encoder.encode([TextDelta("It is")]) + encoder.encode([END]))[-1]
    found = [streamed[name] for name in ("total_duration", "prompt_eval_duration", "eval_duration", "load_duration")]
    assert found == [2_500_000_000, 500_000_000, 2_000_000_000, 0]
    whole = json.loads(WIRE.encode_turn(REQUEST, replace(STAMP, elapsed=lambda: 2.5), fold([END])))
    assert (whole["total_duration"], whole["eval_duration"]) == (2_500_000_000, 2_500_000_000)

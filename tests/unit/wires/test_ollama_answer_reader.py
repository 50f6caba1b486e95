"""What Ollama and its imitators answer."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak import wires
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    FirstToken,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Message, Role
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.wires.shared import call_deltas as _deltas

WIRE = wires.load("ollama")
Body = dict[str, Any]
REQUEST = Request("m", (), (Tool("f"), Tool("g")))
MARKS: Body = {"model": "m", "created_at": "2026-01-02T03:04:05.678901Z"}
COUNTS: Body = {
    "total_duration": 4883583458,
    "load_duration": 1334875,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 342546000,
    "eval_count": 282,
    "eval_duration": 4535599000,
}


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def line(done: bool = False, **message: object) -> Body:
    said = {**MARKS, "message": {"role": "assistant", "content": "", **message}, "done": done}
    return {**said, "done_reason": "stop", **COUNTS} if done else said


def call(name: object = "f", arguments: object = None, **more: object) -> Body:
    return {"function": {"name": name, "arguments": {} if arguments is None else arguments}, **more}


def stream(*lines: Body) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)


def decode(data: bytes, size: int = 1 << 20, request: Request = REQUEST) -> list[Event]:
    decoder = WIRE.new_decoder(request, ids())
    fed = [event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])]
    ended = decoder.finish()
    assert decoder.feed(data) == []
    return fed + ended


def whole(body: object, request: Request = REQUEST) -> list[Event]:
    return WIRE.decode_turn(request, ids(), json.dumps(body).encode())


def names_and_arguments(turn: Turn) -> list[tuple[str, str, str]]:
    return [(one.id, one.name, one.arguments) for one in turn.calls]


ANSWER = stream(
    line(thinking="Let me "),
    line(thinking="see. ø"),
    line(content="It is "),
    line(content="cold 🙂."),
    line(tool_calls=[call("f", {"city": "Oslo", "t": 1.50}, id="call_1")]),
    line(tool_calls=[call("g", {}, id="call_2"), call("f", {"city": "Bærum"}, id="call_3")]),
    line(done=True),
)


# ---------------------------------------------------------------- streams


def test_an_answer_becomes_events_in_its_order_wire7() -> None:
    assert decode(ANSWER) == [
        ReasoningDelta("Let me "),
        ReasoningDelta("see. ø"),
        TextDelta("It is "),
        TextDelta("cold 🙂."),
        CallStarted("call_1", "f", "call_1"),
        ArgsDelta("call_1", '{"city": "Oslo", "t": 1.5}'),
        CallEnded("call_1"),
        CallStarted("call_2", "g", "call_2"),
        ArgsDelta("call_2", "{}"),
        CallEnded("call_2"),
        CallStarted("call_3", "f", "call_3"),
        ArgsDelta("call_3", '{"city": "Bærum"}'),
        CallEnded("call_3"),
        Finished(StopReason.CALLS, Usage(26, 282)),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_it_does_not_matter_how_the_bytes_are_cut(size: int) -> None:
    assert decode(ANSWER, size) == decode(ANSWER)


def test_every_first_cut_gives_the_same_events() -> None:
    expected = decode(ANSWER)
    for at in range(len(ANSWER)):
        decoder = WIRE.new_decoder(REQUEST, ids())
        assert decoder.feed(ANSWER[:at]) + decoder.feed(ANSWER[at:]) + decoder.finish() == expected


def test_the_last_line_may_lack_its_end() -> None:
    assert decode(ANSWER.rstrip()) == decode(ANSWER)


def test_lines_of_an_odd_form_are_read_alike() -> None:
    assert decode(b"\xef\xbb\xbf" + ANSWER.replace(b"\n", b"\r\n\r\n")) == decode(ANSWER)


def test_an_end_without_done_is_a_failure_wherever_it_comes_p3_p6() -> None:
    for at in range(len(ANSWER) - 1):
        events = decode(ANSWER[:at])
        last = events[-1]
        assert isinstance(last, Failed)
        assert last.failure.kind is FailureKind.DISCONNECTED
        assert not any(isinstance(event, Finished | Failed) for event in events[:-1])


def test_nothing_follows_the_end() -> None:
    assert decode(ANSWER + ANSWER + b"nonsense\n") == decode(ANSWER)


def test_an_error_in_the_middle_ends_the_answer_p6_wire5() -> None:
    events = decode(
        stream(line(content="Hi"), {"error": "an error was encountered while running the model"}, line(True))
    )
    assert events[0] == TextDelta("Hi")
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.failure.message == "an error was encountered while running the model"
    assert last.failure.status == 200
    assert len(events) == 2


def test_an_error_says_what_it_means_wire5() -> None:
    last = whole({"error": 'registry.ollama.ai/library/x "x" does not support tools'})[-1]
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.TOOLS_UNSUPPORTED


def test_an_error_that_is_empty_is_none() -> None:
    assert decode(stream({**line(content="Hi"), "error": ""}, {**line(True), "error": None}))[0] == TextDelta("Hi")


@pytest.mark.parametrize("bad", [b"{", b"nonsense\n", b'{"message": {"content": "x"\n', b"[]\n", b"5\n", b'"x"\n'])
def test_bytes_that_are_not_the_protocol_are_a_failure_p6(bad: bytes) -> None:
    events = decode(stream(line(content="Hi")) + bad)
    assert events[0] == TextDelta("Hi")
    assert isinstance(events[-1], Failed)
    assert len(events) == 2


def test_a_line_that_is_too_long_is_a_failure_p7() -> None:
    last = decode(b'{"x":"' + b"y" * (8 * 1024 * 1024) + b'"}\n')[-1]
    assert isinstance(last, Failed)
    assert "line_bytes" in last.failure.message


@pytest.mark.parametrize(("size", "ends"), [(-1, Finished), (0, Finished), (1, Failed)])
def test_the_arguments_of_one_answer_have_a_limit_p7(
    monkeypatch: pytest.MonkeyPatch, size: int, ends: type[Event]
) -> None:
    monkeypatch.setattr(_deltas, "MAX_SIZE", 5000)
    arguments = json.dumps({"a": "x" * (5000 - 1024 + size - len('{"a": ""}'))})
    body = line(True, tool_calls=[call("f", arguments)])
    assert isinstance(decode(stream(body))[-1], ends)
    assert isinstance(whole(body)[-1], ends)


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", StopReason.END),
        ("length", StopReason.LENGTH),
        ("load", StopReason.END),
        ("unload", StopReason.END),
        ("", StopReason.END),
        (None, StopReason.END),
        ("brand_new", StopReason.END),
        (5, StopReason.END),
        (["stop"], StopReason.END),
    ],
)
def test_why_it_ended(reason: object, stop: StopReason) -> None:
    assert whole({**line(True), "done_reason": reason})[-1] == Finished(stop, Usage(26, 282))


@pytest.mark.parametrize(("reason", "stop"), [("stop", StopReason.CALLS), ("length", StopReason.LENGTH)])
def test_a_plain_stop_with_calls_is_for_the_calls_wire3(reason: str, stop: StopReason) -> None:
    turn = fold(whole({**line(True, tool_calls=[call("f")]), "done_reason": reason}))
    assert turn.stop is stop
    assert len(turn.calls) == 1


@pytest.mark.parametrize("counted", [None, "many", -1, True, [], {}])
def test_counts_that_are_none_count_as_none(counted: object) -> None:
    body = {**line(True), "prompt_eval_count": counted, "eval_count": counted}
    assert whole(body)[-1] == Finished(StopReason.END, Usage())


@pytest.mark.parametrize("done", [None, 1, "true", False, []])
def test_only_true_is_done_p6(done: object) -> None:
    last = whole({**line(content="Hi"), "done": done})[-1]
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.DISCONNECTED


# ---------------------------------------------------------------- whole answers


def test_a_whole_answer_is_the_fold_of_its_stream_wire4() -> None:
    calls = [
        call("f", {"city": "Oslo", "t": 1.50}, id="call_1"),
        call("g", {}, id="call_2"),
        call("f", {"city": "Bærum"}, id="call_3"),
    ]
    body = line(True, content="It is cold 🙂.", thinking="Let me see. ø", tool_calls=calls)
    data = json.dumps(body, ensure_ascii=False).encode()
    assert fold(WIRE.decode_turn(REQUEST, ids(), data)) == fold(decode(ANSWER))


def test_a_whole_answer_may_be_written_over_many_lines() -> None:
    body = json.dumps(line(True, content="Hi", tool_calls=[call("f", {"a": 1})]), indent=2).encode()
    turn = fold(WIRE.decode_turn(REQUEST, ids(), b"\xef\xbb\xbf" + body))
    assert (turn.text, json.loads(turn.calls[0].arguments)) == ("Hi", {"a": 1})


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[]", b"<html>", b"\xff\xfe", b"[" * 50_000])
def test_a_body_that_is_no_answer_is_a_failure_p6(body: bytes) -> None:
    assert isinstance(WIRE.decode_turn(REQUEST, ids(), body)[-1], Failed)


def test_another_word_for_reasoning_is_read_too() -> None:
    assert whole(line(True, reasoning="Hm."))[0] == ReasoningDelta("Hm.")
    assert whole(line(True, reasoning={"x": 1}))[0] == Finished(StopReason.END, Usage(26, 282))


# ---------------------------------------------------------------- calls


def test_calls_without_ids_get_fresh_ones_even_when_they_are_equal() -> None:
    turn = fold(decode(stream(line(tool_calls=[call("f"), call("f")]), line(tool_calls=[call("f")]), line(True))))
    assert names_and_arguments(turn) == [("fresh0", "f", "{}"), ("fresh1", "f", "{}"), ("fresh2", "f", "{}")]


def test_indices_say_nothing() -> None:
    calls: list[Body] = [{"function": {"index": 0, "name": name, "arguments": {}}} for name in "fgf"]
    assert [one.name for one in fold(whole(line(True, tool_calls=calls))).calls] == ["f", "g", "f"]


def test_two_tools_under_one_id_are_two_calls() -> None:
    calls = [call("f", {"a": 1}, id="x"), call("g", {"b": 1}, id="x"), call("f", {"a": 2}, id="x")]
    turn = fold(whole(line(True, tool_calls=calls)))
    assert names_and_arguments(turn) == [
        ("x", "f", '{"a": 1}'),
        ("fresh0", "g", '{"b": 1}'),
        ("fresh1", "f", '{"a": 2}'),
    ]


def test_the_same_call_told_twice_under_its_id_is_one() -> None:
    again = line(tool_calls=[call("f", {"a": 1}, id="x")])
    assert len(fold(decode(stream(again, again, line(True)))).calls) == 1


def test_an_id_of_the_history_is_not_given_again() -> None:
    request = Request("m", (Message(Role.ASSISTANT, (Call("x", "f", "{}"),)),), (Tool("f"),))
    assert fold(whole(line(True, tool_calls=[call("f", id="x")]), request)).calls[0].id == "fresh0"


@pytest.mark.parametrize("id_", ["functions.f:0", "x" * 65, "", 5, None, {}])
def test_an_id_that_clients_cannot_use_is_replaced(id_: object) -> None:
    assert fold(whole(line(True, tool_calls=[call("f", id=id_)]))).calls[0].id == "fresh0"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": 1.50, "b":1e2}', '{"a": 1.50, "b":1e2}'),
        ('{"n": 123456789012345678901234567890}', '{"n": 123456789012345678901234567890}'),
        (r'{"a": "\u003cb\u003e \u0026 \u2028"}', '{"a": "<b> & \u2028"}'),
        (r'{"a": "\\u003c \" \u00e6 \n"}', r'{"a": "\\u003c \" \u00e6 \n"}'),
        (r'"{\"a\": 1}"', '{"a": 1}'),
        ("null", "{}"),
        ('""', "{}"),
        ('" "', "{}"),
        ("[1]", "[1]"),
        ("5", "5"),
    ],
)
def test_arguments_are_kept_as_they_came_p1(arguments: str, text: str) -> None:
    said = '{"message":{"tool_calls":[{"function":{"name":"f","arguments":' + arguments + '}}]},"done":true}'
    assert fold(decode(said.encode())).calls[0].arguments == text


def test_arguments_may_be_missing() -> None:
    assert fold(whole(line(True, tool_calls=[{"function": {"name": "f"}}]))).calls[0].arguments == "{}"


def test_one_call_may_stand_without_its_list() -> None:
    assert [one.name for one in fold(whole(line(True, tool_calls=call("f")))).calls] == ["f"]


@pytest.mark.parametrize("none", [[], None])
def test_no_calls_are_no_calls(none: object) -> None:
    assert whole(line(True, tool_calls=none)) == [Finished(StopReason.END, Usage(26, 282))]


@pytest.mark.parametrize(
    "entry", [5, "f", None, [], {}, {"function": 5}, {"function": {}}, call(""), call(5), {"name": "f"}], ids=repr
)
def test_a_call_that_cannot_be_read_is_rejected_and_kept_p1(entry: object) -> None:
    events = whole(line(True, content="Hi", tool_calls=[entry]))
    rejected = events[1]
    assert isinstance(rejected, CallRejected)
    assert rejected.complaint.problem is Problem.PARSE_ERROR
    assert json.loads(rejected.raw) == entry
    assert events[2] == Finished(StopReason.END, Usage(26, 282))


def test_arguments_that_length_has_cut_are_rejected_p3() -> None:
    cut = line(tool_calls=[call("f", '{"a": "b')])
    events = decode(stream(cut, {**line(True), "done_reason": "length"}))
    assert fold(events).calls == ()
    rejected = events[-2]
    assert isinstance(rejected, CallRejected)
    assert rejected.complaint.problem is Problem.TRUNCATED
    assert rejected.raw == '{"a": "b'


def test_arguments_that_the_connection_has_cut_are_rejected_p3() -> None:
    events = decode(stream(line(tool_calls=[call("f", '{"a": "b')])))
    rejected = events[-2]
    assert isinstance(rejected, CallRejected)
    assert rejected.complaint.problem is Problem.DISCONNECTED


def test_a_tool_that_nobody_offered_is_told_as_it_came() -> None:
    assert fold(whole(line(True, tool_calls=[call("nope")]))).calls[0].name == "nope"


def test_an_alias_is_turned_back_into_the_tool_s_name() -> None:
    request = Request("m", (), (Tool("mcp.files:read"),))
    sent = json.loads(WIRE.encode_request(request, QUIRKS).body)
    alias = sent["tools"][0]["function"]["name"]
    assert alias != "mcp.files:read"
    assert fold(whole(line(True, tool_calls=[call(alias)]), request)).calls[0].name == "mcp.files:read"


# ---------------------------------------------------------------- anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["message", "content", "thinking", "tool_calls", "function", "name", "arguments", "done", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(body=st.dictionaries(st.sampled_from(["message", "done", "done_reason", "error", "eval_count"]), JSON))
def test_any_json_ends_in_one_last_event_p6(body: Body) -> None:
    for events in (whole(body), decode(stream(body, line(True)))):
        assert isinstance(events[-1], Failed | Finished)
        assert not any(isinstance(event, Failed | Finished) for event in events[:-1])
        fold(events)


def first_token(events: list[Event]) -> FirstToken:
    assert isinstance(events[-1], Finished)
    return events[-1].first_token


def test_probabilities_of_the_first_token_are_read_if_they_are_asked_for() -> None:
    tops = [{"token": "no", "logprob": 0.0}, {"token": "yes", "logprob": -1e9}]
    told = {"logprobs": [{"token": "no", "logprob": 0.0, "top_logprobs": tops}]}
    streamed, answer = stream(line(content="no") | told, line(done=True)), line(done=True, content="no") | told
    asking, sure = replace(REQUEST, top_tokens=2), (("no", 1.0), ("yes", pytest.approx(0.0)))
    assert first_token(decode(streamed, request=asking)) == first_token(whole(answer, asking)) == sure
    assert first_token(decode(streamed)) == first_token(whole(answer)) == ()

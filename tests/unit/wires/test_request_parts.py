"""What vendors add and what is lost on another wire, how they count tokens, and how their streams break (P6)."""

import pytest

from toolspeak.errors import BadFrame
from toolspeak.ir.event import Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, as_list, as_object, as_string, object_at
from toolspeak.ir.message import Message, Opaque, Result, Role, Text, Vendor
from toolspeak.ir.request import Request
from toolspeak.wires.shared.answer_decoder import count, read_counts, write_counts
from toolspeak.wires.shared.failures import CUT_OFF, ENDED_IN_ERROR, http_status, status_of, unreadable
from toolspeak.wires.shared.json_body import dump_body
from toolspeak.wires.shared.request_parts import foreign_fields, is_own, own_fields, write_instructions_once


def of(wire: str, *keys: str) -> Vendor:
    return Vendor(wire, dict.fromkeys(keys, 1))


# What goes along on the same wire only


def test_a_wire_sees_its_own_fields_only() -> None:
    assert own_fields(of("a", "x"), "a") == {"x": 1}
    assert own_fields(of("a", "x"), "b") == {}
    assert own_fields(None, "a") == {}


def test_a_wire_can_write_its_own_parts_only() -> None:
    part = Opaque(of("a", "type"), "audio")
    assert is_own(part, "a")
    assert not is_own(part, "b")


@pytest.mark.parametrize("role", ["system", "developer", "user"])
@pytest.mark.parametrize("end", ["plain", 'é "quoted" \\ \n', "\u2028\x85", "half \ud83d of it", "\U0001f600"])
def test_long_instructions_are_written_as_any_text_is(role: str, end: str) -> None:
    for size in (10, 5000, 300_000):
        messages: list[Json] = [{"role": role, "content": "x" * size + end}, {"role": "user", "content": end}]
        for _ in range(2):
            assert dump_body([*write_instructions_once(messages)]) == dump_body(messages)


@pytest.mark.parametrize(
    "messages", [[], [{"role": "system"}], [{"role": "system", "content": [{"text": "x" * 5000}]}]]
)
def test_messages_without_instructions_in_one_text_stay_as_they_are(messages: list[Json]) -> None:
    assert write_instructions_once(messages) is messages


REQUEST = Request(
    "m",
    (
        Message(Role.USER, (Text("t", of("a", "cache_control")), Opaque(of("a", "type"), "audio"), Text("u"))),
        Message(Role.ASSISTANT, (Text("t", of("a", "cache_control")), Opaque(of("a", "type"), "audio"))),
        Message(Role.TOOL, (Result("c", (Text("x"), Opaque(of("a", "type"), "document"))),)),
    ),
    extra={"a": {"service_tier": "x", "user": None}},
)


def test_on_another_wire_every_loss_is_named_once_and_in_order() -> None:
    keys = ["audio", "cache_control", "document", "service_tier", "user"]
    assert foreign_fields(REQUEST, "b") == tuple(f"a: {key}" for key in keys)


def test_a_loss_inside_a_result_is_named() -> None:
    pieces = (Text("x", of("a", "cache_control")),)
    request = Request("m", (Message(Role.TOOL, (Result("c", pieces),)),), extra={"a": {}})
    assert foreign_fields(request, "b") == ("a: cache_control",)


def test_on_the_same_wire_nothing_is_lost() -> None:
    assert foreign_fields(REQUEST, "a") == ()
    assert foreign_fields(Request("m", ()), "a") == ()


def test_of_several_wires_only_the_others_lose() -> None:
    request = Request("m", (), extra={"a": {"x": 1}, "b": {"y": 1}, "c": {}})
    assert foreign_fields(request, "a") == ("b: y",)
    assert foreign_fields(request, "c") == ("a: x", "b: y")


# Numbers of tokens


@pytest.mark.parametrize(
    ("value", "tokens"),
    [(0, 0), (7, 7), (7.9, 7), (-1, 0), (None, 0), ("7", 0), (True, 0), ([7], 0), ({}, 0), (10**30, 10**30)],
)
def test_what_is_no_number_of_tokens_counts_as_none(value: Json, tokens: int) -> None:
    assert count({"tokens": value}, "tokens") == tokens


def test_missing_counts_as_none() -> None:
    assert count({}, "tokens") == 0
    assert object_at({}, "details") == {}


@pytest.mark.parametrize("value", [None, 5, "x", [], True])
def test_what_is_no_object_inside_is_an_empty_one(value: Json) -> None:
    assert object_at({"details": value}, "details") == {}
    assert object_at({"details": {"x": value}}, "details") == {"x": value}


@pytest.mark.parametrize(("told", "said"), [("prompt", "completion"), ("input", "output")])
def test_counts_come_back_under_either_words(told: str, said: str) -> None:
    usage = Usage(9, 8, 7, 6, 5)
    body = write_counts(usage, told, said)
    assert (body[f"{told}_tokens"], body[f"{said}_tokens"], body["total_tokens"]) == (9, 8, 17)
    assert read_counts(body, told, said) == usage


@pytest.mark.parametrize("value", [None, 5, True, "", [], {}])
def test_nothing_is_read_from_a_value_of_another_type(value: Json) -> None:
    assert (as_string(value), as_list(value), as_object(value)) == ("", [], {})
    assert read_counts(value, "input", "output") == Usage()


def test_a_value_of_the_right_type_is_read_as_it_is() -> None:
    assert (as_string("x"), as_list([1]), as_object({"a": 1})) == ("x", [1], {"a": 1})


# How streams break


def test_a_stream_that_breaks_is_a_failure_of_the_upstream_p6() -> None:
    assert (CUT_OFF.kind, http_status(CUT_OFF)) == (FailureKind.DISCONNECTED, 502)
    assert (ENDED_IN_ERROR.kind, http_status(ENDED_IN_ERROR)) == (FailureKind.OTHER, 502)


def test_bytes_that_cannot_be_read_say_why_p6() -> None:
    failure = unreadable(BadFrame("line_bytes 11 is over the limit"))
    assert failure.message == "the upstream's answer cannot be read: line_bytes 11 is over the limit"
    assert http_status(failure) == 502


@pytest.mark.parametrize("status", [400, 401, 418, 429, 500, 503, 599])
def test_an_error_keeps_the_upstreams_status(status: int) -> None:
    assert http_status(Failure(FailureKind.OTHER, "m", status)) == status


@pytest.mark.parametrize("status", [0, 200, 302, 399, 600, -1])
@pytest.mark.parametrize("kind", FailureKind)
def test_a_status_that_is_no_error_is_replaced_by_that_of_the_kind_p6(kind: FailureKind, status: int) -> None:
    assert http_status(Failure(kind, "m", status)) == status_of(kind)
    assert 400 <= status_of(kind) < 600

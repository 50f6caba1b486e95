"""The judge of `toolspeak conformance` accepts good responses, and finds what clients refuse or lose (CONF-1)."""

import re

import pytest

from testkit.grammar import samples, spoiled, spoiled_streams
from testkit.grammar.samples import SAMPLES
from testkit.grammar.spoiled import Mutation, cut
from toolspeak.conformance.protocol import judge_error, judge_stream, judge_whole

GOOD = ("text", "nothing", "one call", "two calls", "reasoning")
TOLERATED = {
    "has the event name",
    "changed",  # created or model; a changed id is found
    "not an id",
    r"must not have the keys \['role'\]",
    "unknown keys",
    "finish_reason is missing",
    "logprobs is missing",
    r"unknown keys \['name'\]",  # an empty name adds nothing
    "not empty beside",
    "usage comes twice",
    "not the sum",
    "chunk without choices",
    "after an error",
    "param is missing",
    "tool_calls is empty",
    "not an object",
    "not null",
    "two kinds of reasoning",
    "type is missing",  # of an error; that of a call is found
    "not a string",
    "refusal is missing",
    "content is missing",
    "cached_tokens is missing",
}
"""What clients put up with: the strict judge of the tests refuses it in our own streams, this one does not."""


def names(*tables: list[tuple[str, Mutation, str]]) -> list[tuple[str, Mutation, str]]:
    return [row for table in tables for row in table if row[0] != "custom"]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_stream_and_a_good_body_have_no_problem(name: str) -> None:
    for answer in (judge_stream(samples.chat_stream(SAMPLES[name])), judge_whole(samples.chat_whole(SAMPLES[name]))):
        assert answer.problems == ()
        assert answer.text == SAMPLES[name].text
        assert answer.reasoning == SAMPLES[name].reasoning
        expected = [{"name": call.name, "arguments": call.arguments} for call in SAMPLES[name].calls]
        assert list(answer.calls) == expected


@pytest.mark.parametrize(("name", "spoil", "complaint"), names(spoiled_streams.STREAMS["openai_chat"]))
def test_a_bad_stream_is_found_unless_clients_put_up_with_it(name: str, spoil: Mutation, complaint: str) -> None:
    answer = judge_stream(b"".join(spoil(cut(samples.chat_stream(SAMPLES[name])))))
    assert answer.problems or complaint in TOLERATED


@pytest.mark.parametrize(("name", "spoil", "complaint"), names(spoiled.WHOLES["openai_chat"]))
def test_a_bad_body_is_found_unless_clients_put_up_with_it(name: str, spoil: Mutation, complaint: str) -> None:
    answer = judge_whole(b"".join(spoil([samples.chat_whole(SAMPLES[name])])))
    assert answer.problems or complaint in TOLERATED


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"role":"assistant",', "", "the first delta has no role"),
        ('"index":0,"id"', '"id"', "the index of a call is None"),
        ('"id":"call_1",', "", "call 0: the id is missing"),
        ('"name":"now",', "", "call 0: the name is missing"),
        ("data: [DONE]\n\n", "", "without [DONE]"),
        ('"finish_reason":"tool_calls"', '"finish_reason":"stop"', "'stop' with calls"),
        ('"usage":{"prompt_tokens":7', '"usage":{"prompt_tokens":"7"', "usage is missing"),
        ('{"index":0,"function":{"arg', '{"index":0,"function":{"name":"now","arg', "the name comes again"),
    ],
)
def test_a_problem_says_what_is_wrong(old: str, new: str, problem: str) -> None:
    good = samples.chat_stream(SAMPLES["one call"]).decode()
    assert old in good
    assert any(problem in found for found in judge_stream(good.replace(old, new, 1).encode()).problems)


def test_an_error_in_a_stream_is_an_error_and_needs_no_end() -> None:
    answer = judge_stream(samples.chat_stream(SAMPLES["error"]))
    assert (answer.error, answer.problems) == ("overloaded", ())


def test_bytes_that_are_no_json_are_a_problem_and_no_exception() -> None:
    assert judge_whole(b"\xff<html>").problems
    assert judge_stream(b"data: {\n\ndata: [1]\n\n\xff").problems
    assert judge_stream(b"").problems


def test_an_error_response_must_have_a_message() -> None:
    good = judge_error(400, b'{"error": {"message": "no such model", "type": "x"}}')
    assert (good.error, good.problems) == ("no such model", ())
    bad = judge_error(502, b"<html>Bad Gateway</html>")
    assert bad.error == "status 502"
    assert re.search("status 502 without an error object", bad.problems[0])

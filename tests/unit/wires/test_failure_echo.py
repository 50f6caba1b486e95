"""An error whose class rests on the client's own words is an echo, and says nothing about the upstream (CAP-6)."""

import json
from collections.abc import Callable

import pytest

from testkit.timing import BAR, growth
from toolspeak.ir.failure import FailureKind
from toolspeak.wires import rests_on_echo
from toolspeak.wires.shared.failure_echo import LARGEST_REQUEST
from toolspeak.wires.shared.failures import read_failure

FORGED = "this does not support tools"


def is_echo(message: str, sent: object, path: str = "chat/completions") -> bool:
    failure = read_failure(400, json.dumps({"error": {"message": message}}).encode())
    assert failure.kind is FailureKind.TOOLS_UNSUPPORTED, failure
    return rests_on_echo(failure, path, json.dumps(sent).encode())


@pytest.mark.parametrize(
    "sent",
    [
        {"model": "m", "user": FORGED},
        {"model": FORGED},
        {"metadata": {"a": [{"deep": f"x {FORGED} y"}]}},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": FORGED.upper()}]}]},
        {"tools": [{"type": "function", "function": {"name": "f", "description": FORGED}}]},
        {FORGED: 1},
        {"user": "this does\nnot   support\ttools"},
        {"user": "this d\\u006fes not support tools"},
        {"user": "this%20does%20not%20support%20tools"},
        {"user": "this does&nbsp;not support&#32;tools"},
        {"user": "\N{FULLWIDTH LATIN SMALL LETTER T}his does not support tools"},
    ],
)
@pytest.mark.parametrize("quoted", ["Invalid value: '{}'", "{}", 'user "{}" is bad', "[{}]"])
def test_words_of_the_client_are_an_echo_wherever_they_stand_cap6(sent: object, quoted: str) -> None:
    assert is_echo(quoted.format(FORGED), sent)


def test_a_model_in_the_path_counts_too_cap6() -> None:
    assert is_echo(f"models/{FORGED} is not found", {}, "models/this%20does%20not%20support%20tools:generateContent")


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ("user: tools is not supported", {"user": "tools"}),
        ("not support parameters: no tools", {"user": "no tools"}),
        ("function call is not supported", {"user": "call"}),
    ],
)
def test_a_short_value_that_completes_a_wording_is_an_echo_cap6(message: str, sent: object) -> None:
    assert is_echo(message, sent)


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/llama3:latest does not support tools",
        "No endpoints found that support tool use. To learn more, see the docs.",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "llama3 does not support tools, and neither does Roll a die",
    ],
)
def test_a_refusal_in_the_servers_own_words_is_none_cap6(message: str) -> None:
    dice = {"type": "function", "function": {"name": "roll_dice", "parameters": {"type": "object"}}}
    history = [{"role": "user", "content": "Roll a die"}, {"role": "tool", "content": "17", "tool_call_id": "c"}]
    assert not is_echo(message, {"model": "llama3", "messages": history, "tools": [dice], "tool_choice": "auto"})


def test_an_echo_beside_the_servers_own_words_does_not_hide_them_cap6() -> None:
    assert not is_echo(f"user {FORGED}: set --enable-auto-tool-choice", {"user": FORGED})


def test_other_classes_are_not_looked_at() -> None:
    failure = read_failure(429, json.dumps({"error": FORGED}).encode())
    assert not rests_on_echo(failure, "", json.dumps({"user": FORGED}).encode())


SIZE = LARGEST_REQUEST - 1024
LARGE: list[Callable[[int], object]] = [
    lambda size: {"messages": ["does not suppor" * (size // 16)]},
    lambda size: {"messages": [f"{index} does" for index in range(size // 14)]},
    lambda size: json.loads("[" * (size * 500 // SIZE) + "]" * (size * 500 // SIZE)),
]


@pytest.mark.parametrize("fill", LARGE, ids=["one string", "many strings", "deep"])
def test_the_work_is_bounded_cap6(fill: Callable[[int], object]) -> None:
    half, whole = (json.dumps(fill(size)).encode() for size in (SIZE // 2, SIZE))
    message = "does not support tools; " * 200
    failure = read_failure(400, json.dumps({"error": message}).encode())
    assert growth(lambda sent: rests_on_echo(failure, "", sent), half, whole) < BAR


def test_a_request_too_long_to_search_counts_as_an_echo_cap6() -> None:
    failure = read_failure(400, b'{"error": "m does not support tools"}')
    assert rests_on_echo(failure, "", b" " * (LARGEST_REQUEST + 1))
    assert rests_on_echo(failure, "", b'"m does not support tools') is True, "what is no JSON is searched as text"

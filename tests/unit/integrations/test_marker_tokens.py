"""The markers of reasoning as tokens."""

from collections.abc import Sequence

from toolspeak.dialects import load
from toolspeak.integrations.marker_tokens import MarkerTokens

SPECIAL = {"<|open|>": 1, "<|close|>": 2, "<|sep|>": 3, "<|channel>": 4, "<channel|>": 5}
WORDS = {"think": 10, "thought": 11, "response": 12}


def encode(text: str) -> Sequence[int]:
    """Write special tokens and known words as one token each, and everything else letter by letter."""
    ids: list[int] = []
    while text:
        known = next((word for word in (*SPECIAL, *WORDS) if text.startswith(word)), text[0])
        ids.append({**SPECIAL, **WORDS}.get(known, 1000 + ord(known[0])))
        text = text[len(known) :]
    return ids


def tokens(dialect: str) -> MarkerTokens:
    return MarkerTokens(load(dialect).grammar.reasoning, SPECIAL, encode)


def test_a_marker_of_several_tokens_is_found_only_when_it_is_complete() -> None:
    kimi = tokens("kimi_k3")
    assert kimi.is_open_after([7, 1, 10, 3]) is True
    assert kimi.is_open_after([7, 1, 10]) is None
    assert kimi.is_open_after([1, 10, 3, 7, 2, 10, 3]) is False
    assert kimi.is_open_after([1, 12, 3]) is None  # it opens the answer, and not the reasoning


def test_the_last_marker_decides_about_a_prompt_of_several_turns() -> None:
    assert tokens("kimi_k3").is_open_after([1, 10, 3, 7, 2, 10, 3, 1, 10, 3]) is True


def test_markers_are_found_with_their_places() -> None:
    found = list(tokens("gemma").find([9, 4, 11, 7, 7, 5, 8]))
    assert [(each.start, each.end, each.opens) for each in found] == [(1, 3, True), (5, 6, False)]


def test_a_marker_that_is_written_letter_by_letter_is_only_a_quotation() -> None:
    hermes = tokens("hermes")
    assert hermes.is_open_after(encode("Write <think> first.")) is None
    assert hermes.first(opens=True) is not None  # `<|channel>thought`, whose parts are tokens
    assert MarkerTokens(load("hermes").grammar.reasoning, {}).first(opens=True) is None


def test_the_reach_is_that_of_the_longest_marker() -> None:
    assert tokens("kimi_k3").reach == 2
    assert MarkerTokens(load("hermes").grammar.reasoning, {"<think>": 1}).reach == 0

"""Where reasoning ends and content begins, however the text is cut."""

import pytest

from testkit.splits import at_random, by_characters
from toolspeak.dialects import load
from toolspeak.integrations.reasoning_reader import ReasoningReader, Split, is_opened_by_prompt, read_reasoning
from toolspeak.ir.tool import Tool

NOTE = Tool("note", parameters={"type": "object", "properties": {"text": {"type": "string"}}})
CALL = '<tool_call>{"name": "note", "arguments": {"text": "x"}}</tool_call>'


def streamed(dialect: str, pieces: tuple[str, ...], *, is_open: bool) -> Split:
    reader = ReasoningReader(load(dialect), is_open=is_open)
    splits = [*map(reader.feed, pieces), reader.finish()]
    return Split("".join(split.reasoning for split in splits), "".join(split.content for split in splits))


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("hermes", "<think>\nEasy.</think>\n\nHi <think>b</think>", Split("\nEasy.", "\n\nHi <think>b</think>")),
        ("hermes", f"\n <think>a</think>{CALL}", Split("a", CALL)),
        ("hermes", "  Plain <think>a</think>", Split("", "  Plain <think>a</think>")),
        ("hermes", "<think></think>", Split()),
        ("hermes", f"<think>never closed {CALL}", Split(f"never closed {CALL}")),
        ("hermes", "<think>a</thi", Split("a</thi")),
        ("hermes", "<thi", Split("", "<thi")),
        ("hermes", " \n", Split("", " \n")),
        ("mistral", "[THINK]x[/THINK]y", Split("x", "y")),
        ("minimax", "<mm:think>Which file?</mm:think>\n", Split("Which file?", "\n")),
        ("react", "Thought: hm\nAction: f", Split(" hm", "\nAction: f")),
        ("kimi_k3", "<|open|>think<|sep|>a<|close|>think<|sep|>b", Split("a", "b")),
    ],
)
def test_reasoning_ends_with_its_first_block(dialect: str, text: str, expected: Split) -> None:
    assert read_reasoning(load(dialect), text, is_open=False) == expected
    for pieces in (by_characters(text), *at_random(text, 5, seed=3)):
        assert streamed(dialect, pieces, is_open=False) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I see.</think>\nYes", Split("I see.", "\nYes")),
        ("<think>I see.</think>\nYes", Split("I see.", "\nYes")),
        ("\n<think>I see.</think>Yes", Split("I see.", "Yes")),
        (f"I could {CALL}.</think>No", Split(f"I could {CALL}.", "No")),
        ("I see.", Split("I see.")),
        ("<thi", Split("<thi")),
        ("", Split()),
    ],
)
def test_reasoning_that_the_prompt_has_opened_begins_at_once(text: str, expected: Split) -> None:
    assert read_reasoning(load("hermes"), text, is_open=True) == expected
    for pieces in (by_characters(text), *at_random(text, 5, seed=4)):
        assert streamed("hermes", pieces, is_open=True) == expected


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("I see.</think>\nYes", True),
        (f"I could {CALL}.</think>No", True),  # P5: this call must not run
        ("<think>a</think>b", False),
        (CALL.replace('"x"', '"the tag </think>"'), False),
        ("No reasoning.", False),
    ],
)
def test_p5_a_closer_outside_of_calls_tells_that_the_prompt_has_opened_the_reasoning(text: str, is_open: bool) -> None:
    assert is_opened_by_prompt(load("hermes"), text, [NOTE]) is is_open

"""Text that is safe to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.text.visible import tamed, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 👍", "plain é 日本 👍"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb\x00\x7f\x9b", "a\\rb\\x00\\x7f\\x9b"),
        ("\u202eright to left\u2069", "\\u202eright to left\\u2069"),
        ("half \ud800", "half \\ud800"),
        ("joined \u200d blank \xa0 mark \ufeff", "joined \u200d blank \xa0 mark \ufeff"),
    ],
)
def test_what_commands_a_terminal_is_tamed_and_all_else_stays(text: str, shown: str) -> None:
    assert tamed(text) == shown


@given(st.text())
def test_what_is_visible_needs_no_taming(text: str) -> None:
    assert tamed(visible(text)) == visible(text)

"""Text is safe and short enough to show."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.text.display import cut, tamed, visible


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


NOTE = re.compile(r"\n\[… (\d+) bytes left out …\]\n")


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("text", ["", "abcd", "äb", "🦊"])
def test_what_is_short_enough_stays_as_it_is_run4(text: str) -> None:
    assert cut(text, 4) == text


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("abcde", 4, "ab\n[… 1 bytes left out …]\nde"),
        ("abcdefgh", 5, "abc\n[… 3 bytes left out …]\ngh"),
        ("abc", 1, "a\n[… 2 bytes left out …]\n"),
        ("abc", 0, "\n[… 3 bytes left out …]\n"),
        ("abc", -7, "\n[… 3 bytes left out …]\n"),
        ("äöü", 4, "ä\n[… 2 bytes left out …]\nü"),
        ("äöü", 5, "ä\n[… 2 bytes left out …]\nü"),
        ("🦊🦊🦊", 11, "🦊\n[… 4 bytes left out …]\n🦊"),
        ("🦊🦊", 7, "🦊\n[… 4 bytes left out …]\n"),
        ("🦊🦊", 2, "\n[… 8 bytes left out …]\n"),
        ("\ud800b\udfff", 6, "\ud800\n[… 1 bytes left out …]\n\udfff"),
    ],
)
def test_head_and_tail_stay_and_no_character_is_cut_in_two_run4(text: str, most: int, short: str) -> None:
    assert cut(text, most) == short


@given(text=st.text(st.characters()), most=st.integers(-2, 40))
def test_nothing_but_the_middle_is_missing_run4(text: str, most: int) -> None:
    short = cut(text, most)
    if size(text) <= most:
        assert short == text
        return
    notes = [found for found in NOTE.finditer(short) if text.startswith(short[: found.start()])]
    heads = [(short[: found.start()], short[found.end() :], int(found[1])) for found in notes]
    assert any(
        text.endswith(tail) and size(head) + size(tail) <= max(most, 0) and size(head + tail) + missing == size(text)
        for head, tail, missing in heads
    )


@given(text=st.text(st.characters(), min_size=30), most=st.integers(8, 20))
def test_little_more_is_left_out_than_must_be_run4(text: str, most: int) -> None:
    found = NOTE.search(cut(text, most))
    assert found is not None
    assert size(text) - int(found[1]) >= most - 6

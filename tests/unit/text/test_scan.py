"""Markers: the longest wins, what may still become one is held back, and nothing else is (P1, P7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.text.scan import Hit, Markers

TAGS = Markers(("<tool_call>", "<tool_calls>", "<tool", "</tool_call>", "[TOOL_CALLS]"))


def test_a_marker_is_found_where_it_starts() -> None:
    assert TAGS.search("a <tool_call>{", 0) == Hit(2, "<tool_call>")
    assert TAGS.match("a <tool_call>{", 2) == "<tool_call>"


def test_there_is_none_where_none_is() -> None:
    assert TAGS.search("a < b > c", 0) is None
    assert TAGS.match("a <tool_call>", 0) is None


def test_the_longest_marker_wins() -> None:
    assert TAGS.search("<tool_calls>", 0) == Hit(0, "<tool_calls>")
    assert TAGS.search("<tool_cal", 0, final=True) == Hit(0, "<tool")


def test_the_search_starts_where_it_is_told() -> None:
    assert TAGS.search("<tool_call><tool_call>", 1) == Hit(11, "<tool_call>")


@pytest.mark.parametrize("cut", range(1, len("[TOOL_CALLS]")))
def test_the_begin_of_a_marker_is_held_back(cut: int) -> None:
    begin = "[TOOL_CALLS]"[:cut]
    assert TAGS.search("text " + begin, 0) == Hit(5, "")
    assert TAGS.match("text " + begin, 5) == ""
    assert TAGS.search("text " + begin, 0, final=True) is None


def test_a_marker_that_may_go_on_is_held_back_until_the_end() -> None:
    assert TAGS.match("<tool", 0) == ""
    assert TAGS.match("<tool", 0, final=True) == "<tool"
    assert TAGS.match("<tool ", 0) == "<tool"


def test_case_matters_unless_told_otherwise() -> None:
    assert TAGS.search("<TOOL_CALL>", 0) is None
    loose = Markers(("<Tool_Call>",), ignore_case=True)
    assert loose.search("<TOOL_CALL>", 0) == Hit(0, "<tool_call>")


def test_only_ascii_letters_have_two_cases() -> None:
    loose = Markers(("<kß>",), ignore_case=True)
    assert loose.match("<Kß>", 0) == "<kß>"
    assert loose.match("<\u212aß>", 0) is None  # the Kelvin sign
    assert loose.match("<kẞ>", 0) is None


def test_a_name_in_lower_case_is_as_long_as_the_text() -> None:
    loose = Markers(("İ<x>",), ignore_case=True)
    hit = loose.search("aİ<X>", 0)
    assert hit is not None
    assert len(hit.literal) == len("İ<X>")


def test_no_markers_are_never_found() -> None:
    nothing = Markers(())
    assert nothing.search("text", 0) is None
    assert nothing.match("text", 0, final=True) is None
    assert nothing.literals == frozenset()


def test_an_empty_marker_is_none() -> None:
    assert Markers(("", "a")).literals == frozenset({"a"})


def test_characters_that_mean_something_in_patterns_are_themselves() -> None:
    odd = Markers((".*", "a+", "[^", "(?:", "\\d", "$"))
    assert odd.search("x a a+", 0) == Hit(4, "a+")
    assert odd.search("x.y", 0, final=True) is None


def expected(literals: list[str], text: str) -> Hit | None:
    """Search the slow way: every place, every literal; the end of the text may cut one."""
    for start in range(len(text)):
        rest = text[start:]
        whole = [literal for literal in literals if rest.startswith(literal)]
        if any(len(literal) > len(rest) and literal.startswith(rest) for literal in literals):
            return Hit(start, "")
        if whole:
            return Hit(start, max(whole, key=len))
    return None


LITERALS = st.lists(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=5)


@given(LITERALS, st.text("ab<", max_size=12))
def test_a_search_finds_what_a_slow_one_finds(literals: list[str], text: str) -> None:
    assert Markers(literals).search(text, 0) == expected(literals, text)


@given(LITERALS, st.text("ab<", max_size=12))
def test_nothing_longer_than_a_marker_is_held_back_p7(literals: list[str], text: str) -> None:
    hit = Markers(literals).search(text, 0)
    if hit is not None and hit.literal == "":
        assert len(text) - hit.start < max(map(len, literals))


@given(LITERALS, st.text("ab<", max_size=12))
def test_at_the_end_nothing_is_held_back(literals: list[str], text: str) -> None:
    hit = Markers(literals).search(text, 0, final=True)
    assert hit is None or hit.literal in literals

"""Finding the mentions of a text, and whether it has a number, a name or a value."""

import pytest

from toolspeak.engine.guardrails.language import is_english
from toolspeak.engine.guardrails.mentions import (
    beside,
    is_mentioned,
    is_mostly_mentioned,
    is_number_mentioned,
    meaning,
    mentions,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Find the factorial of 5,10 and 15.", ("5", "10", "15")),
        ("It costs 1,500 or 2.5 dollars", ("1,500", "2.5")),
        ("Solve x^2 for x1 at 10m", ()),
        ("go to New York, then to Los Angeles", ("New York", "Los Angeles")),
        ("say 'hello there' to Bob", ("hello there", "Bob")),
        ("Bob's car on Monday in May", ()),
        ("", ()),
    ],
)
def test_numbers_names_and_quotations_are_mentioned(text: str, found: tuple[str, ...]) -> None:
    assert mentions(text) == found


def test_words_of_meaning_have_a_stem_whatever_their_spelling() -> None:
    assert meaning("calculateDistance of two towns") == meaning("the distances, town_") == {"dista", "town"}
    assert meaning("What is the") == frozenset()


def test_a_neighbour_in_a_list_follows_its_word() -> None:
    assert list(beside("the colours navy, purple and maroon", "navy")) == ["purple"]
    assert list(beside("the colours navy, purple and maroon", "purple")) == ["maroon"]
    assert list(beside("the colours navy, purple and maroon", "maroon")) == []
    assert list(beside("navy and the rest", "navy")) == []
    assert list(beside("navy", "")) == []


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "10%"), (12, "twelve"), (5000, "5 km"), (-3, "minus 3"), (2.5, "2.5")]
)
def test_a_number_is_mentioned_however_it_is_written(value: float, text: str) -> None:
    assert is_number_mentioned(value, text)


def test_a_number_is_not_mentioned_by_a_part_of_a_word() -> None:
    assert not is_number_mentioned(1, "the phone of the stone")
    assert not is_mentioned("15", "115 1500")


def test_a_name_is_mentioned_by_its_letters() -> None:
    assert is_mentioned("California", "San Francisco, CA")
    assert is_mentioned("Pennsylvania", "Erie, PA")
    assert is_mentioned("New York", "NY")
    assert not is_mentioned("Chicago", "San Francisco, CA")
    assert not is_mentioned("California", "cage")


def test_the_numbers_of_a_list_are_not_mentioned() -> None:
    assert mentions("1. What is 4?\n 2) And 13?\n3 more") == ("4", "13", "3")


def test_a_text_is_mentioned_if_most_of_its_words_are() -> None:
    assert is_mostly_mentioned("1915-03-17", "on March 17, 1915")
    assert is_mostly_mentioned("New York City", "in new york")
    assert is_mostly_mentioned("", "anything")
    assert not is_mostly_mentioned("physics", "What did Einstein do?")


def test_women_are_mentioned_by_a_woman() -> None:
    assert is_mostly_mentioned("women", "the best woman in tennis")
    assert meaning("women") == meaning("woman")


def test_english_is_known_by_its_small_words() -> None:
    assert is_english("What is this?")
    assert not is_english("Wie spät ist es?")

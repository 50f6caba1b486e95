"""No false call: 2,000 texts that only look like calls (P5), nothing of them lost (P1), and what makes those texts."""

from collections import Counter

import pytest

from testkit.noncalls.reading import ANY, READERS, Counts, calls_in, events_of, readers_of, run, telling
from testkit.noncalls.renderings import RENDERINGS, Rendering
from testkit.noncalls.texts import FAMILIES, noncall, noncalls

TEXTS = 2_000
FORMS = [pytest.param(row, dialect, id=f"{dialect}-{row.opener}") for row in RENDERINGS for dialect in row.dialects]


@pytest.fixture(scope="module")
def counts() -> Counts:
    return run(TEXTS)


def test_p5_no_reader_of_a_dialect_sees_a_call_where_none_is_made(counts: Counts) -> None:
    assert [case.line() for case in telling(counts.cases)] == []


def test_p1_no_character_of_a_text_without_a_call_is_lost(counts: Counts) -> None:
    assert counts.lost == 0


@pytest.mark.parametrize(("row", "dialect"), FORMS)
def test_what_the_texts_quote_is_a_call_when_it_stands_alone(row: Rendering, dialect: str) -> None:
    text = row.write("search", {"query": "best tea shops", "limit": 3})
    assert calls_in(events_of(dialect, text)) == ["search"]


def test_a_text_is_made_from_its_number_alone() -> None:
    assert [noncall(number) for number in range(200)] == list(noncalls(200))
    assert noncall(7) == noncall(7)
    assert readers_of(noncall(7)) == readers_of(noncall(7))


def test_hardly_any_text_occurs_twice() -> None:
    assert len({text.text for text in noncalls(TEXTS)}) > 0.97 * TEXTS


def test_every_family_occurs_equally_often() -> None:
    families = Counter(text.family for text in noncalls(TEXTS))
    assert families == dict.fromkeys(FAMILIES, TEXTS // len(FAMILIES))


def test_every_dialects_syntax_occurs() -> None:
    shown = {dialect for text in noncalls(TEXTS) for dialect in text.dialects}
    assert shown == set(READERS)
    assert {dialect for row in RENDERINGS for dialect in row.dialects} == set(READERS)


def test_every_text_is_read_by_whose_markup_it_shows_and_by_any() -> None:
    for text in noncalls(200):
        assert {*text.dialects, ANY} <= set(readers_of(text))

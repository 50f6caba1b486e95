"""Many streams at once: a small one of `just streams`, and that its judge can fail (P6, CHK-7)."""

import asyncio
from dataclasses import replace

import pytest

from testkit.stream_ends import LEAVES, STEADY, WAITS, Book, Heard, Load
from testkit.streams import KEEP_ALIVE_S, LATE_S, Outcome, judge, measure
from tests.gateway.scene import DRIVER

SMALL = Load(streams=50, chunks=40, pace_s=0.02, waiting=5, leaving=5, silence_s=KEEP_ALIVE_S + LATE_S + 0.5)


def test_fifty_streams_at_once_none_lost_none_mixed_up_p6() -> None:
    assert asyncio.run(measure(SMALL, driver=DRIVER)).faults() == []


def line(text: str) -> bytes:
    return (
        b'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"%b"},'
        % text.encode()
    )


def heard(number: int, text: str, kind: str = STEADY) -> Heard:
    """Hear this text on Ollama's wire, whole."""
    end = b'"done":true,"done_reason":"stop","total_duration":1,"load_duration":1,"prompt_eval_count":1,'
    body = line(text) + b'"done":false}\n' + line("") + end
    body += b'"prompt_eval_duration":1,"eval_count":1,"eval_duration":1}\n'
    return Heard(number, "ollama", kind, 200, bytearray(body), 3, 0.5, ended=True)


def judged(*clients: Heard, book: Book | None = None) -> Outcome:
    outcome = Outcome(Load(3, 2, 0.0, 1, 1, 3.0))
    judge(list(clients), book or Book(most_open=3), outcome)
    return outcome


GOOD = (heard(0, "0.0 0.1 ", WAITS), heard(1, "1.0 ", LEAVES), heard(2, "2.0 2.1 "))
FREED = Book(most_open=3, hung_up={1: 10.0}, freed={1: 10.1})


def test_the_judge_finds_nothing_where_nothing_is_wrong() -> None:
    assert judged(*GOOD, book=FREED).faults() == []


@pytest.mark.parametrize(
    ("bad", "book", "word"),
    [
        ((GOOD[0], GOOD[1], heard(2, "2.0 0.1 ")), FREED, "mixed up"),
        ((GOOD[0], GOOD[1], heard(2, "2.0 ")), FREED, "mixed up"),
        ((GOOD[0], heard(1, "2.0 ", LEAVES), GOOD[2]), FREED, "mixed up"),
        ((GOOD[0], GOOD[1], replace(GOOD[2], ended=False)), FREED, "lost"),
        ((GOOD[0], GOOD[1], replace(GOOD[2], body=GOOD[2].body[:-20])), FREED, "lost"),
        ((GOOD[0], GOOD[1], replace(GOOD[2], status=500)), FREED, "lost"),
        ((replace(GOOD[0], longest_wait_s=3.1), GOOD[1], GOOD[2]), FREED, "kept alive"),
        ((replace(GOOD[0], longest_wait_s=2.1), GOOD[1], GOOD[2]), FREED, "waited"),
        (GOOD, Book(most_open=3, hung_up={1: 10.0}), "were freed"),
        (GOOD, Book(most_open=3, hung_up={1: 10.0}, freed={1: 11.5}), "freed after"),
        (GOOD, Book(most_open=2, hung_up={1: 10.0}, freed={1: 10.1}), "open at once"),
    ],
)
def test_the_judge_finds_what_is_wrong(bad: tuple[Heard, ...], book: Book, word: str) -> None:
    assert [fault for fault in judged(*bad, book=book).faults() if word in fault]

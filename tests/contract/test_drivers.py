"""Both drivers of the gateway give the same bytes; and the comparison sees it if they do not."""

import asyncio
from collections import Counter
from contextlib import ExitStack

import pytest

from testkit.driver_cases import FAULTS, driver_case
from testkit.driver_pair import DriverPair, Seen, compare
from toolspeak.ir.event import Event
from toolspeak.runtime.text_shortcut import TextShortcut

SEEDS = 40


def test_both_drivers_give_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    counts = asyncio.run(compare(0, SEEDS, pairs=4))
    assert (counts["cases"], counts["differences"]) == (SEEDS, 0), capsys.readouterr().out


def test_plain_text_takes_the_shortcut_and_the_bytes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[bool] = Counter()
    carries = TextShortcut.carries

    def noted(shortcut: TextShortcut, events: list[Event]) -> bool:
        is_carried = carries(shortcut, events)
        counts[is_carried] += 1
        return is_carried

    monkeypatch.setattr(TextShortcut, "carries", noted)
    seen = asyncio.run(compare(SEEDS, SEEDS, pairs=4))
    assert seen["differences"] == 0
    assert counts[True] > SEEDS // 2


def test_a_case_is_the_same_each_time_and_each_fault_is_among_them() -> None:
    cases = [driver_case(seed) for seed in range(120)]
    assert cases == [driver_case(seed) for seed in range(120)]
    assert {case.fault for case in cases} == set(FAULTS)
    assert all(b"".join(case.pieces()) == case.response[: len(b"".join(case.pieces()))] for case in cases)


def test_a_byte_that_differs_is_told() -> None:
    one, other = Seen(b"HTTP/1.1 200 OK\r\n\r\n", b"abc", "whole"), Seen(b"HTTP/1.1 200 OK\r\n\r\n", b"abd", "whole")
    assert one.differences(other, has_left=False) == ["body: b'abc' != b'abd'"]
    assert one.differences(Seen(one.head, b"ab", "whole"), has_left=True) == []


def test_a_driver_that_loses_a_byte_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spoil the response of one driver."""
    seed = next(seed for seed in range(300) if driver_case(seed).fault == "nothing" and driver_case(seed).is_streamed)

    async def scenario() -> list[str]:
        pair = DriverPair()
        await pair.start()
        with ExitStack() as stack:
            for side in pair.sides:
                stack.enter_context(side.serving())
            first = await pair.compared(driver_case(seed))
            spoiled = pair.sides[1].upstream

            def begin(case: object) -> None:
                del case
                type(spoiled).begin(spoiled, driver_case(seed + 1))

            monkeypatch.setattr(spoiled, "begin", begin)
            second = await pair.compared(driver_case(seed))
            await pair.stop()
        assert first == []
        return second

    assert asyncio.run(scenario())

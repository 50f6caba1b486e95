"""Time and chance."""

import asyncio
import time

from toolspeak.runtime.clock import CLOCK


def test_the_clock_tells_the_time() -> None:
    before = time.time_ns()
    assert before <= CLOCK.nanoseconds() <= time.time_ns()
    assert before // 10**9 <= CLOCK.seconds() <= time.time()


def test_the_clock_never_goes_back_and_sleeps_as_long_as_it_says() -> None:
    before = CLOCK.monotonic()
    asyncio.run(CLOCK.sleep(0.02))
    assert CLOCK.monotonic() - before >= 0.019


def test_ids_are_letters_and_digits_and_never_come_twice() -> None:
    ids = [CLOCK.fresh_id() for _ in range(1000)]
    assert len({*ids}) == 1000
    assert all(id.isalnum() and id.isascii() and len(id) == 24 for id in ids)


def test_chance_is_below_one_and_not_always_the_same() -> None:
    found = {CLOCK.chance() for _ in range(100)}
    assert len(found) > 1
    assert all(0 <= one < 1 for one in found)

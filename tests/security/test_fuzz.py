"""P1 and chunk invariance on damaged texts; `just fuzz` runs more of them."""

import pytest

from testkit.damage import fragments, one, texts

ALL_TEXTS, PIECES = texts(), fragments()


@pytest.mark.parametrize("block", range(12))
def test_no_damage_raises_loses_a_byte_or_shows_where_the_text_was_cut(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        assert one(seed, ALL_TEXTS, PIECES) is None

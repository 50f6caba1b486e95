"""Every dialect that writes reads back what it has written, whatever the values are (INL-3, P1).

Hypothesis drives the generator of `testkit/hostile.py`, so a failure is shrunk. `just roundtrip` tries far more, with
the same generator, in a quarter of the time. CI runs that with 2,000 examples of each dialect; so few are enough here.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testkit.roundtrip import example_for, failures, text_of, writing
from toolspeak.dialects import load

EXAMPLES = 40


@pytest.mark.parametrize("name", writing())
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(source=st.randoms(use_true_random=False))
def test_what_a_dialect_writes_it_reads_back(name: str, source: Random) -> None:
    dialect, made = load(name), example_for(name, source)
    assert list(failures(dialect, made, source)) == [], text_of(dialect, made)

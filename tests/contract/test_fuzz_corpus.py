"""The inputs that the coverage-guided fuzzer found worth keeping raise nothing (`just fuzz-coverage` finds more)."""

import pytest

from testkit.fuzzing.corpus import FOLDER, kept
from testkit.fuzzing.targets import NAMES, load

MOST_BYTES = 2_000_000


@pytest.mark.parametrize("name", NAMES)
def test_no_kept_input_breaks_a_promise_p1_p3_p6(name: str) -> None:
    target, inputs = load(name), kept(name)
    assert len(inputs) >= 10
    for data in inputs:
        target.check(data)


def test_the_kept_inputs_stay_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < MOST_BYTES

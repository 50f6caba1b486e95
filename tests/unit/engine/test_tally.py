"""A turn tells how calls came, so that later requests can be planned by it (CAP-4)."""

import pytest

from tests.unit.engine.scene import FORCE, NATIVE, OSLO, Ran, run, texts, written
from toolspeak.engine.settings import Settings
from toolspeak.ir.failure import FailureKind
from toolspeak.testing import called, failed

CALL = called("get_weather", '{"city": "Oslo"}')
LEAK = written(OSLO)


def came(ran: Ran) -> tuple[int, int, int]:
    return ran.outcome.native, ran.outcome.rescued, ran.outcome.empty


def test_native_calls_are_counted_cap4() -> None:
    assert came(run(NATIVE, CALL)) == (1, 0, 0)
    assert came(run(NATIVE, (*CALL, *called("now", id="call_2")))) == (2, 0, 0)


def test_calls_that_leaked_as_text_are_counted_cap4() -> None:
    assert came(run(NATIVE, LEAK)) == (0, 1, 0)
    assert came(run(NATIVE, failed(FailureKind.NATIVE_PARSER_FAILED, salvage=LEAK))) == (0, 1, 0)


def test_empty_answers_are_counted_also_those_that_were_asked_again_cap4() -> None:
    assert came(run(Settings(retries=1), texts(), CALL)) == (1, 0, 1)
    assert came(run(Settings(retries=1), texts(), texts())) == (0, 0, 2)


@pytest.mark.parametrize("answers", [(LEAK,), ("It is cold.",)])
def test_emulated_answers_say_nothing_about_native_tools_cap4(answers: tuple[str, ...]) -> None:
    assert came(run(FORCE, *answers)) == (0, 0, 0)


def test_words_say_nothing_cap4() -> None:
    assert came(run(NATIVE, "It is cold.")) == (0, 0, 0)


def test_what_is_emulated_after_a_refusal_is_not_counted_as_leaked_cap4() -> None:
    ran = run(NATIVE, failed(FailureKind.TOOLS_UNSUPPORTED), LEAK)
    assert ran.outcome.refused is FailureKind.TOOLS_UNSUPPORTED
    assert came(ran) == (0, 0, 0)

"""A model that writes the same call again and again is stopped; what waits for the end of the text counts once (P7)."""

import pytest

from tests.unit.engine.scene import NATIVE, TOOLS, run
from toolspeak.dialects import load
from toolspeak.dialects.core.output import MOST_TIMES
from toolspeak.ir.event import Discarded, StopReason, Why
from toolspeak.ir.turn import fold

LINE = '{"name": "get_weather", "arguments": {"city": "Paris"}}\n'
LOOP = LINE * (MOST_TIMES + 10) + LINE[:30]


@pytest.mark.parametrize("dialect", ["any", "hermes", "llama_json", "inline_json"])
def test_a_bare_call_in_a_loop_is_one_call_p7(dialect: str) -> None:
    reader = load(dialect).reader(TOOLS)
    events = [event for char in LOOP for event in reader.feed(char)]
    assert reader.cut is Why.LIMIT
    turn = fold([*events, *reader.finish()])
    assert [call.arguments for call in turn.calls] == ['{"city": "Paris"}']
    assert turn.text == ""
    assert sum(len(part.raw) for part in turn.parts if isinstance(part, Discarded)) > len(LINE) * MOST_TIMES


def test_as_often_as_may_be_they_are_meant_p7() -> None:
    assert len(load("any").read(LINE * MOST_TIMES, TOOLS).calls) == MOST_TIMES


def test_the_upstream_of_a_loop_is_closed_and_the_call_counts_once_p7() -> None:
    ran = run(NATIVE, LOOP.replace("Paris", "Oslo") * 3)
    assert ran.upstream.closed == 1
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert ran.turn.stop is StopReason.CALLS

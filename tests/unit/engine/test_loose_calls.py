"""JSON objects that name a tool are found in a text in which no reader took them for calls (CHK-12)."""

from itertools import count

import pytest

from testkit.timing import BAR, growth
from toolspeak.engine.loose_calls import LooseCalls, loose_calls

ONE = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
TWO = '{"name": "get_weather", "arguments": {"city": "Bergen"}}'
CUT = '{"name": "get_weather", "arguments": {"city": "Mo'


def found(text: str) -> LooseCalls:
    return loose_calls(text, {"get_weather"}, (f"id{index}" for index in count()))


@pytest.mark.parametrize(
    ("text", "calls"),
    [(f"{ONE}\ndone", 1), (f"{ONE}\n{CUT}", 1), (f"{ONE}\n{ONE}\n{TWO}\n{CUT}", 2), (f"```json\n{ONE}\n```", 1)],
)
def test_objects_without_words_around_them_are_alone(text: str, calls: int) -> None:
    loose = found(text)
    assert (len(loose.calls), loose.alone) == (calls, True)


def test_only_the_names_of_tools_make_calls() -> None:
    assert found('{"name": "Ada", "arguments": {}}').calls == ()
    assert found('{"tool": "get_weather", "args": {"city": "Oslo"}}').calls[0].arguments == '{"city":"Oslo"}'
    assert found(f"{ONE} {ONE}").calls == found(ONE).calls
    assert not found(f"first {ONE}").alone
    assert found("").calls == ()


def test_twice_the_text_takes_about_twice_the_time_p8() -> None:
    opened = '{"name": "get_weather", "arguments": {'
    assert growth(found, opened * 400, opened * 800) < BAR

"""Calls that a request asks for and the model has not made are asked for (CHK-12)."""

import json

import pytest

from tests.unit.engine.scene import BERGEN, FORCE, ONE, OSLO, WEATHER, ask, run, user, words_of, written
from toolspeak.engine.guardrails.guardrail import MOST_FOLLOW_UPS
from toolspeak.engine.guardrails.missing_calls import fitting_calls, left_over, question, uses, without_slips
from toolspeak.engine.settings import Settings
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool

MISSING = Settings(request_missing_calls=True).over(FORCE)
BOTH = ask(user("What is the weather in Oslo and in Bergen?"))
TWO = [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"})]


def play(artist: str, minutes: int) -> Call:
    return Call("c", "play", f'{{"artist": "{artist}", "minutes": {minutes}}}')


PLAY = Tool("play", "Play songs.", {"type": "object", "properties": {"artist": {}, "minutes": {}}})
STOP = Tool("stop", "Stop.", {"type": "object", "properties": {"after": {}}})
SONGS = "Play Taylor Swift and Maroon 5, for 20 and 15 minutes respectively."


@pytest.mark.parametrize("dialect", ["fenced", "hermes", "llama_json"])
def test_the_missing_call_is_asked_for_chk12(dialect: str) -> None:
    settings = Settings(dialect=dialect).over(MISSING)
    ran = run(settings, written(OSLO, dialect=dialect), written(BERGEN, dialect=dialect), request=BOTH)
    assert (ran.calls, ran.outcome.requests) == (TWO, 2)
    assert "Bergen" in words_of(ran.sent[1].messages[-1])
    assert words_of(ran.sent[1].messages[-2]) == written(OSLO, dialect=dialect)


def test_nothing_is_asked_where_nothing_is_left_chk12() -> None:
    assert run(MISSING, written(OSLO)).outcome.requests == 1
    assert run(MISSING, written(OSLO, BERGEN), request=BOTH).outcome.requests == 1
    assert run(MISSING, "It is cold in Oslo and in Bergen.", request=BOTH).outcome.requests == 1
    assert run(FORCE, written(OSLO), request=BOTH).outcome.requests == 1
    assert run(MISSING, written(OSLO), request=ask(*BOTH.messages, choice=ONE)).outcome.requests == 1


@pytest.mark.parametrize("answer", ["done", "", written(OSLO), written(Call("x", "get_weather", '{"city": "Rome"}'))])
def test_only_a_call_that_uses_what_is_left_counts_chk12(answer: str) -> None:
    ran = run(MISSING, written(OSLO), answer, request=BOTH)
    assert (ran.calls, ran.turn.failure) == (TWO[:1], None)


def test_it_is_asked_on_so_often_and_no_more_chk12() -> None:
    names = ["Rome", "Riga", "Bonn", "Bern", "Oslo", "Wien", "Graz", "Lyon", "Nice", "Metz", "Genf"]
    asked = ask(user(f"What is the weather in {' and in '.join(names)}?"))
    calls = [written(Call(name, "get_weather", f'{{"city": "{name}"}}')) for name in names]
    assert [call["city"] for _, call in run(MISSING, *calls, request=asked).calls] == names[: MOST_FOLLOW_UPS + 1]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (SONGS, ("Maroon", "5", "15")),
        ("Play Taylor Swift for 20 minutes.", ()),
        ("Play Taylor Swift for 20 minutes and say it is 20% off", ()),
        ("Play Taylor Swift, abba and queen for 20 minutes each", ("abba",)),
        ('Play Taylor Swift for 20 minutes, then "Yellow"', ("Yellow",)),
        ("Play Taylor Swift for 20 minutes and stop on Monday", ()),
        ("Play Taylor Swift for 20 minutes and 1,500 more", ("1,500",)),
        ("x and y " * 2000 + SONGS, ()),
    ],
)
def test_numbers_names_and_neighbours_are_left_over_chk12(asked: str, left: tuple[str, ...]) -> None:
    assert left_over(asked, [play("Taylor Swift", 20)], [PLAY]) == left


def test_what_waits_for_a_result_is_not_missing_chk12() -> None:
    asked = "Play Taylor Swift for 20 minutes and send a link to the result to Maroon 5."
    assert left_over(asked, [play("Taylor Swift", 20)], [PLAY]) == ()


def test_in_steps_only_the_same_tool_is_missing_chk12() -> None:
    asked = "First play Taylor Swift for 20 minutes, then play Maroon 5 for 15."
    made, more = [play("Taylor Swift", 20)], [Call("s", "stop", '{"after": 15}'), play("Maroon 5", 15)]
    assert fitting_calls(asked, made, [PLAY, STOP], more) == more[1:]
    assert fitting_calls(asked.removeprefix("First "), made, [PLAY, STOP], more) == more


def test_neighbours_are_asked_for_together_chk12() -> None:
    asked = "Add 3 and 4, 5 and 12, then 6 and 7."
    assert "for: 5 and 12. If" in question(asked, ("5", "12"))
    assert "for: Add 3; 12, then 6. If" in question(asked, ("3", "12", "6"))


def test_it_is_asked_in_the_words_of_the_request_chk12() -> None:
    asked = "Water the roses with 3 liters and the beans with 5 liters."
    assert "for: the beans with 5 liters." in question(asked, ("5",))
    assert "for: Oslo." in question("Rome", ("Oslo",))


def test_a_call_uses_what_is_left_over_chk12() -> None:
    assert uses(play("Maroon 5", 15), ("Maroon", "5", "15"))
    assert not uses(play("Taylor Swift", 20), ("Maroon", "5", "15"))
    assert uses(Call("c", "x", "not JSON: Maroon"), ("Maroon",))


def test_what_the_tool_is_about_is_not_left_over_chk12() -> None:
    call = Call("c", "get_weather", '{"city": "Oslo"}')
    assert left_over("Tell me the Weather and the City of Oslo", [call], [WEATHER]) == ()


def test_a_call_that_a_later_one_corrects_is_not_delivered_chk12() -> None:
    asked = ask(user("Weather in Oslo for 3 days, and in Bergen for 5 days?"), tools=(FORECAST,))
    first, slip, right = forecast("Oslo", 3, "C"), forecast("Oslo", 5, "C"), forecast("Bergen", 5, "F")
    ran = run(MISSING, written(first), written(slip), written(right), request=asked)
    assert ran.outcome.requests == 3
    assert ran.calls == [
        ("forecast", {"city": "Oslo", "days": 3, "unit": "C"}),
        ("forecast", {"city": "Bergen", "days": 5, "unit": "F"}),
    ]


FORECAST = Tool("forecast", "Forecast.", {"type": "object", "properties": {"city": {}, "days": {}, "unit": {}}})


def forecast(city: str, days: int, unit: str) -> Call:
    return Call("c", "forecast", json.dumps({"city": city, "days": days, "unit": unit}))


@pytest.mark.parametrize(
    ("asked", "slip", "last"),
    [
        # one argument differs: each city in each year
        ("Weather in Oslo and Bergen for 3 and 5 days", forecast("Bergen", 3, "C"), forecast("Bergen", 5, "C")),
        # the last call has not what the one before it added
        ("Weather in Oslo for 3 and 5 days, and in Bergen", forecast("Oslo", 5, "C"), forecast("Bergen", 3, "F")),
        # the request says it twice
        ("Oslo for 3 days and 5 days, Bergen for 5 days", forecast("Oslo", 5, "C"), forecast("Bergen", 5, "F")),
        # another tool
        (
            "Weather in Oslo for 3 days, and in Bergen for 5",
            Call("c", "play", '{"city": "Oslo", "days": 5}'),
            forecast("Bergen", 5, "F"),
        ),
    ],
)
def test_other_added_calls_are_delivered_chk12(asked: str, slip: Call, last: Call) -> None:
    assert without_slips(asked, [forecast("Oslo", 3, "C")], [slip, last], [FORECAST, PLAY]) == [slip, last]

"""Which tools a prompt describes where there are many, and that the others can still be called (INL-11)."""

import json

import pytest

from tests.unit.engine.scene import answered, ask, run, said, user, words, written
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.shortlist import shortlist
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice

FEW = Settings(mode=Mode.FORCE, dialect="fenced", detailed_tools=3)


def tool(name: str, description: str, *parameters: str) -> Tool:
    properties: JsonObject = {key: {"type": "string", "description": f"The {key}."} for key in parameters}
    return Tool(name, description, {"type": "object", "properties": properties, "required": [*parameters]})


MEASURES = [
    tool(f"measure_{kind}", f"Measure the {kind} of something.", kind) for kind in ("mass", "length", "volume", "speed")
]
MANY = (
    *MEASURES,
    tool("get_weather", "Tell the weather of a city.", "city"),
    tool("sendMail", "Send an electronic letter.", "recipient"),
    tool("book_flight", "Reserve a seat in an aeroplane.", "departure"),
)


def names(chosen: tuple[Tool, ...]) -> list[str]:
    return [each.name for each in chosen]


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("How is the weather in Oslo?", "get_weather"),
        ("Send a mail to Ann.", "sendMail"),
        ("Reserve two seats, please", "book_flight"),
        ("MEASURING the volumes of both", "measure_volume"),
    ],
)
def test_tools_that_share_words_with_the_request_are_described_inl11(asked: str, first: str) -> None:
    assert names(shortlist(MANY, ask(user(asked), tools=MANY), 1)) == [first]


def test_the_same_tools_are_chosen_anew_for_each_request_inl11() -> None:
    for _ in range(2):
        assert names(shortlist(MANY, ask(user("How is the weather?"), tools=MANY), 1)) == ["get_weather"]
        assert names(shortlist(MANY[:5], ask(user("Send a mail about the speed."), tools=MANY), 1)) == ["measure_speed"]
        assert names(shortlist(MANY, ask(user("Send a mail to Ann."), tools=MANY), 1)) == ["sendMail"]


def test_tools_keep_the_clients_order_and_few_tools_are_all_described_inl11() -> None:
    request = ask(user("Send the weather by mail."), tools=MANY)
    assert names(shortlist(MANY, request, 2)) == ["get_weather", "sendMail"]
    assert shortlist(MANY, request, 0) == shortlist(MANY, request, 7) == MANY
    nothing = ask(user("¿Qué?"), tools=MANY)
    assert names(shortlist(MANY, nothing, 3)) == names(MANY[:3])


def test_a_tool_that_was_called_or_is_demanded_is_described_inl11() -> None:
    call = Call("c1", "book_flight", '{"departure": "Oslo"}')
    history = (user("Reserve a seat."), said("", call), answered(call, "Done."), user("And how is the weather?"))
    assert names(shortlist(MANY, ask(*history, tools=MANY), 2)) == ["get_weather", "book_flight"]
    demanded = ToolChoice(ChoiceMode.NAMED, "sendMail")
    assert names(shortlist(MANY, ask(user("weather"), tools=MANY, choice=demanded), 1)) == ["sendMail"]


def test_an_earlier_message_counts_less_than_the_latest_inl11() -> None:
    history = (user("How is the weather?"), said("Fine."), user("Send a mail."))
    assert names(shortlist(MANY, ask(*history, tools=MANY), 1)) == ["sendMail"]
    assert names(shortlist(MANY, ask(*history[:2], user("And there?"), tools=MANY), 1)) == ["get_weather"]


def test_the_prompt_describes_some_tools_and_names_the_others_inl11() -> None:
    call = Call("c1", "get_weather", '{"city": "Oslo"}')
    request = ask(user("How is the weather in Oslo?"), tools=MANY)
    sent = words(run(FEW, written(call), request=request).sent[0])
    assert "Tell the weather of a city." in sent
    assert "Reserve a seat in an aeroplane." not in sent
    assert "only the names are given: measure_volume, measure_speed, sendMail, book_flight." in sent
    other = words(run(FEW, written(call), request=ask(user("Reserve a seat."), tools=MANY)).sent[0])
    assert "Reserve a seat in an aeroplane." in other


def test_a_tool_that_is_only_named_can_be_called_and_is_checked_inl11() -> None:
    request = ask(user("How is the weather in Oslo?"), tools=MANY)
    wrong, right = (Call("c1", "book_flight", json.dumps(given)) for given in ({}, {"departure": "Oslo"}))
    done = run(FEW, written(wrong), written(right), request=request)
    assert "departure" in words(done.sent[1])
    assert [(call.name, call.arguments) for call in done.turn.calls] == [("book_flight", '{"departure": "Oslo"}')]

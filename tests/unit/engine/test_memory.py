"""Tools of a conversation whose later turns no longer bring them (INL-4)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.scene import (
    ASK,
    BERGEN,
    CLOCK,
    FORCE,
    HISTORY,
    NOW,
    OSLO,
    QUESTION,
    TOOLS,
    WEATHER,
    answered,
    ask,
    run,
    said,
    system,
    user,
    written,
)
from toolspeak.engine.memory import ToolMemory, inferred_tools, known_tools, memory_key
from toolspeak.ir.message import Call, Message, Result, Role, Text, ToolReference
from toolspeak.ir.tool import Tool, ToolChoice


def test_later_turns_of_a_conversation_have_its_key_inl4() -> None:
    key = memory_key(ASK)
    later = (ask(*HISTORY), ask(*HISTORY, said("3 °C."), user("And in Bergen?")), ask(*HISTORY, tools=()))
    assert {memory_key(request) for request in later} == {key}


def test_what_else_is_asked_for_does_not_change_the_key_inl4() -> None:
    others = (
        ask(choice=ToolChoice(parallel=False)),
        ask(stop=("x",)),
        replace(ASK, stream=False),
        replace(ASK, sampling=replace(ASK.sampling, temperature=1.0)),
    )
    assert {memory_key(request) for request in others} == {memory_key(ASK)}


def test_other_tenants_models_and_beginnings_have_other_keys_inl4() -> None:
    keys = [
        memory_key(ASK),
        memory_key(ASK, "one"),
        memory_key(ASK, "two"),
        memory_key(replace(ASK, model="other")),
        memory_key(ask(user("Another question"))),
        memory_key(ask(system("Be brief."), QUESTION)),
        memory_key(ask(system("Be polite."), QUESTION)),
    ]
    assert len(set(keys)) == len(keys)


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_no_two_conversations_share_a_key_by_gluing_inl4(tenant: str, model: str, first: str, second: str) -> None:
    def key(tenant: str, model: str, *words: str) -> str:
        return memory_key(replace(ask(*map(system, words), QUESTION), model=model), tenant)

    one = key(tenant, model, first, second)
    assert (one == key(tenant, model, first + second)) is False
    assert (one == key(tenant + model, "", first, second)) is (model == "")
    assert (one == key(tenant, model, second, first)) is (first == second)


def test_a_key_is_fit_for_a_store_whatever_was_said_inl4() -> None:
    assert memory_key(ask(user("\ud800"))).isalnum()


def test_the_request_s_own_tools_come_first_inl4() -> None:
    assert known_tools(ASK, (Tool("old"),)) == TOOLS


def test_then_the_remembered_ones_inl4() -> None:
    assert known_tools(ask(*HISTORY, tools=()), TOOLS) == TOOLS


def test_then_those_that_were_called_inl4() -> None:
    request = ask(QUESTION, said("", OSLO, CLOCK), answered(OSLO, "3"), tools=())
    assert [tool.name for tool in known_tools(request)] == ["get_weather", "now"]


def test_the_schemas_of_called_tools_have_the_arguments_that_were_used_inl4() -> None:
    more = Call("c9", "get_weather", '{"days": 3}')
    broken = Call("c8", "now", "{no json")
    tools = inferred_tools(ask(said("", OSLO, broken), said("", more)))
    assert [(tool.name, tool.parameters) for tool in tools] == [
        ("get_weather", {"type": "object", "properties": {"city": {}, "days": {}}}),
        ("now", {"type": "object", "properties": {}}),
    ]


@pytest.mark.parametrize("arguments", ["[]", "5", '"x"', ""])
def test_arguments_that_are_no_object_tell_nothing_inl4(arguments: str) -> None:
    (tool,) = inferred_tools(ask(said("", Call("c1", "now", arguments))))
    assert tool.parameters["properties"] == {}


def test_a_call_with_other_arguments_passes_an_inferred_schema_inl4() -> None:
    request = ask(*HISTORY, tools=())
    assert run(FORCE, written(BERGEN), request=request).calls == [("get_weather", {"city": "Bergen"})]
    longer = Call("c1", "get_weather", '{"city": "Oslo", "days": 3}')
    assert run(FORCE, written(longer), request=request).calls == [("get_weather", {"city": "Oslo", "days": 3})]


def test_a_choice_may_leave_only_some_of_the_tools_chk1() -> None:
    assert known_tools(ask(choice=ToolChoice(allowed=("now",)))) == (NOW,)
    assert known_tools(ask(*HISTORY, tools=(), choice=ToolChoice(allowed=("now",))), TOOLS) == (NOW,)


def test_deferred_tools_are_known_once_a_result_refers_to_them_inl4() -> None:
    tools = (WEATHER, replace(NOW, deferred=True))
    found = Message(Role.TOOL, (Result("c1", (ToolReference("now"), Text("found")), "search"),))
    assert known_tools(ask(tools=tools)) == (WEATHER,)
    assert known_tools(ask(QUESTION, said("", OSLO), found, tools=tools)) == tools


def test_without_calls_in_the_history_nothing_is_inferred_inl4() -> None:
    assert inferred_tools(ask(QUESTION, said("Hello."))) == ()


# ---------------------------------------------------------------- the store

LATER = ask(*HISTORY, tools=())


def test_the_latest_tools_of_a_conversation_are_recalled_inl4() -> None:
    memory = ToolMemory()
    memory.learn(ask(tools=(WEATHER,)), "one")
    memory.learn(ask(tools=TOOLS), "one")
    assert memory.recall(LATER, "one") == TOOLS
    assert memory.recall(LATER, "two") == memory.recall(LATER) == ()
    assert memory.recall(ask(*HISTORY), "one") == ()
    assert memory.recall(ask(tools=()), "one") == ()


def test_tools_of_another_conversation_with_the_same_beginning_do_not_count_inl4() -> None:
    memory = ToolMemory()
    memory.learn(ask(tools=(NOW,)))
    assert memory.recall(LATER) == ()


def test_a_deferred_tool_stays_deferred_in_memory_inl4() -> None:
    memory = ToolMemory()
    memory.learn(ask(tools=(WEATHER, replace(NOW, deferred=True))))
    assert memory.recall(LATER) == (WEATHER,)


@pytest.mark.parametrize(("conversations", "is_known"), [(2, True), (3, True), (4, False)])
def test_each_tenant_keeps_a_bounded_number_of_conversations_inl4_p7(conversations: int, is_known: bool) -> None:
    memory = ToolMemory(most=3)
    memory.learn(ASK, "quiet")
    for number in range(conversations):
        memory.learn(ask(*(HISTORY[:1] if not number else (user(f"Question {number}"),))), "loud")
    assert bool(memory.recall(LATER, "loud")) is is_known
    assert memory.recall(LATER, "quiet") == TOOLS


@pytest.mark.parametrize(("size", "is_known"), [(249, True), (250, True), (251, False)])
def test_tools_that_are_too_large_are_not_kept_inl4_p7(size: int, is_known: bool) -> None:
    large = Tool("get_weather", "x" * (size - len("{}")))
    memory = ToolMemory(most_bytes=1000)
    memory.learn(ask(tools=(large,)))
    assert bool(memory.recall(LATER)) is is_known


def test_the_bytes_of_a_tenant_s_tools_are_bounded_inl4_p7() -> None:
    large = Tool("get_weather", "x" * (250 - len("{}")))  # four of them fit, to the byte
    memory = ToolMemory(most_bytes=1000)
    memory.learn(ask(tools=(large,)))
    for number in range(3):
        memory.learn(ask(user(f"Question {number}"), tools=(large,)))
    assert memory.recall(LATER)
    memory.learn(ask(user("One more"), tools=(large,)))
    assert not memory.recall(LATER)

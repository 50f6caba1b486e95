"""Models that do not do as they are taught, as a client of the gateway meets them.

They relapse into their own form, or deny the tools that an upstream has dropped.
"""

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from testkit.protocols import answering
from testkit.scripted_upstream import JSON, Script, ScriptedUpstream, say
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, serving, towards
from toolspeak.config.shape import Model
from toolspeak.engine.settings import Mode, Settings
from toolspeak.facts.model import ModelFacts, Support

Body = dict[str, Any]
FORCE = Settings(Mode.FORCE)
OSLO = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
CALL = ("get_weather", {"city": "Oslo"})
FENCED = f"```tool_call\n{OSLO}\n```"
HERMES = f"<tool_call>\n{OSLO}\n</tool_call>"
QWEN = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
RELAPSES = {
    "hermes": HERMES,
    "qwen_xml": QWEN,
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    "mistral": '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
    "invoke_xml": '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
    "</invoke>\n</function_calls>",
}
"""Forms that models have relapsed into, by the dialect that teaches them."""
UNTEACHABLE = '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
"""A form that toolspeak reads and cannot write."""


def tool(name: str = "get_weather") -> Body:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "function", "function": {"name": name, "description": "Tell the weather.", "parameters": schema}}


@pytest.fixture
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    """Run a new gateway for each test: what one has learned must not change another."""
    models = (
        Model("emulated", "up", "m", FORCE),
        Model("stated", "up", "n", Settings(dialect="json_action").over(FORCE)),
        Model("unrescued", "up", "o", Settings(rescue=False).over(FORCE)),
        Model("keyed", "up", "p", Settings(key="k7Qz").over(FORCE)),
        Model("native", "up", "q", facts=ModelFacts(tools=Support.NATIVE)),
    )
    with serving(config_of(towards(upstream), models=models)) as served:
        yield served


@dataclass(frozen=True)
class Met:
    """What a client got, streamed or whole, and what the upstream was sent for it."""

    calls: list[tuple[str, Any]]
    text: str
    plan: str
    sent: list[Body]


def turn(
    gateway: Served, upstream: ScriptedUpstream, model: str, *said: str | Answer, streams: bool = False, **more: object
) -> Met:
    """Ask for one turn of a model that says these, one after the other."""
    upstream.answers(*(answering(Answer(one) if isinstance(one, str) else one) for one in said))
    body = {"model": model, "messages": [{"role": "user", "content": "Weather in Oslo?"}], "tools": [tool()], **more}
    reply = gateway.post("/v1/chat/completions", {**body, "stream": streams})
    assert reply.status == 200, reply.body
    message = folded(reply) if streams else reply.json["choices"][0]["message"]
    calls = [
        (one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message.get("tool_calls") or ()
    ]
    return Met(calls, message["content"] or "", reply.headers["x-toolspeak-plan"], [one.json for one in upstream.asked])


def folded(reply: Reply) -> Body:
    """Put the deltas of a stream together."""
    text, calls = "", dict[int, Body]()
    for line in reply.body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: ")).get("choices", ()):
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls") or ():
                function = calls.setdefault(part["index"], {"function": {"name": "", "arguments": ""}})["function"]
                function["name"] += part["function"].get("name") or ""
                function["arguments"] += part["function"].get("arguments") or ""
    return {"content": text, "tool_calls": list(calls.values())}


# ---------------------------------------------------------------- relapses into a form that was not taught


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("said", [*RELAPSES.values(), UNTEACHABLE], ids=[*RELAPSES, "minimax"])
def test_a_call_in_another_form_than_the_taught_one_is_delivered_inl9(
    gateway: Served, upstream: ScriptedUpstream, said: str, *, streams: bool
) -> None:
    met = turn(gateway, upstream, "emulated", f"Let me look.\n\n{said}", streams=streams)
    assert met.calls == [CALL]
    assert met.text.strip() == "Let me look."
    assert len(met.sent) == 1


@pytest.mark.parametrize("dialect", RELAPSES)
def test_after_three_relapses_the_model_is_taught_that_form_inl9(
    gateway: Served, upstream: ScriptedUpstream, dialect: str
) -> None:
    plans = [turn(gateway, upstream, "emulated", RELAPSES[dialect]).plan for _ in range(4)]
    assert [plan.split()[:3] for plan in plans] == [["force", "inline", "fenced"]] * 3 + [["force", "inline", dialect]]


def test_a_call_in_the_taught_form_ends_the_count_and_one_relapse_the_other_way_changes_nothing_inl9(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    said = [HERMES, HERMES, FENCED, HERMES, HERMES, "It is cold.", HERMES, HERMES, FENCED, HERMES, HERMES]
    plans = [turn(gateway, upstream, "emulated", one).plan.split()[2] for one in said]
    assert plans == ["fenced"] * 7 + ["hermes"] * 4


def test_a_preferred_form_holds_for_the_same_tools_and_not_where_the_user_states_one_inl9_cap6(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    for _ in range(3):
        assert turn(gateway, upstream, "emulated", HERMES).calls == [CALL]
        assert turn(gateway, upstream, "stated", HERMES).calls == [CALL]
    assert " hermes " in turn(gateway, upstream, "emulated", "It is cold.").plan
    assert " fenced " in turn(gateway, upstream, "emulated", "It is cold.", tools=[tool("tell_weather")]).plan
    assert " json_action " in turn(gateway, upstream, "stated", "It is cold.").plan


def test_a_form_that_cannot_be_taught_changes_no_plan_inl9(gateway: Served, upstream: ScriptedUpstream) -> None:
    plans = [turn(gateway, upstream, "emulated", UNTEACHABLE).plan for _ in range(4)]
    assert all(" fenced " in plan for plan in plans)


@pytest.mark.parametrize(
    "said",
    [
        f"Hermes writes `{HERMES}`, with tags around it.".replace("\n", ""),
        f"An example:\n\n```xml\n{HERMES}\n```\n\nThat is all.",
        f"> {HERMES}".replace("\n", "\n> "),
    ],
)
def test_a_quoted_call_in_another_form_stays_text_inl9_p5(
    gateway: Served, upstream: ScriptedUpstream, said: str
) -> None:
    met = turn(gateway, upstream, "emulated", said)
    assert (met.calls, met.text) == ([], said)


@pytest.mark.parametrize("model", ["unrescued", "keyed"])
def test_without_rescue_or_with_a_key_only_the_taught_form_is_a_call_inl9_safe4(
    gateway: Served, upstream: ScriptedUpstream, model: str
) -> None:
    met = turn(gateway, upstream, model, RELAPSES["mistral"])
    assert (met.calls, met.text) == ([], RELAPSES["mistral"])


# ---------------------------------------------------------------- tools that an upstream drops in silence

DENIAL = "I'm sorry, but I don't have access to any tools or to real-time weather data."
LARGE = tool()
LARGE["function"]["description"] = " ".join(f"Field {number} of the forecast is in metres." for number in range(60))


def counted(tokens: int, said: str = "It is cold.", calls: list[Body] | None = None) -> Script:
    """Answer with these words, and this count of tokens in the prompt."""
    message = {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": tokens, "completion_tokens": 4, "total_tokens": tokens + 4}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return say(json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode(), JSON)


@pytest.mark.parametrize("streams", [False, True])
def test_a_model_that_denies_its_tools_is_taught_them_in_the_same_turn_and_in_later_ones_cap7(
    gateway: Served, upstream: ScriptedUpstream, *, streams: bool
) -> None:
    """Before, each of four turns asked natively three times and returned the refusal (CAP-7, CHK-6)."""
    first = turn(gateway, upstream, "m", DENIAL, FENCED, streams=streams)
    assert (first.calls, first.text, ["tools" in sent for sent in first.sent]) == ([CALL], "", [True, False])
    for _ in range(3):
        later = turn(gateway, upstream, "m", FENCED, streams=streams)
        assert (later.calls, later.text, ["tools" in sent for sent in later.sent]) == ([CALL], "", [False])
        assert later.plan.startswith("force ")


def test_a_denial_changes_no_turn_of_another_conversation_without_keys_cap7_cap6(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    for _ in range(3):
        turn(gateway, upstream, "m", DENIAL, FENCED)
    other = turn(gateway, upstream, "m", "It is cold.", messages=[{"role": "user", "content": "And in Bergen?"}])
    assert "tools" in other.sent[0]


def test_a_denial_of_a_model_that_is_known_to_have_tools_is_asked_again_natively_cap7_chk6(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    met = turn(gateway, upstream, "native", DENIAL, "It is cold.")
    assert ["tools" in sent for sent in met.sent] == [True, True]


def test_too_few_tokens_in_two_prompts_are_dropped_tools_for_this_tenant_and_these_tools_cap7(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    sent = list[bool]()
    for number in range(4):
        upstream.answers(counted(23))
        messages = [{"role": "user", "content": f"Weather in town {number}?"}]
        gateway.post("/v1/chat/completions", {"model": "m", "messages": messages, "tools": [LARGE]})
        sent.append("tools" in upstream.asked[0].json)
    assert sent == [True, True, False, False]
    assert "tools" in turn(gateway, upstream, "m", "It is cold.").sent[0]


@pytest.mark.parametrize("called", [False, True])
def test_enough_tokens_or_a_call_are_no_dropped_tools_cap7(
    gateway: Served, upstream: ScriptedUpstream, *, called: bool
) -> None:
    arguments = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    calls = [{"id": "c1", "type": "function", "function": arguments}] if called else None
    for tokens in (23, 23, 23) if called else (900, 900, 900):
        upstream.answers(counted(tokens, calls=calls))
        messages = [{"role": "user", "content": "Weather in Oslo?"}]
        gateway.post("/v1/chat/completions", {"model": "m", "messages": messages, "tools": [LARGE]})
        assert "tools" in upstream.asked[0].json


# ---------------------------------------------------------------- announcements of a call

NARRATION = "Let me check the weather for you."
NATIVE_CALL = Answer(calls=(("call_1", "get_weather", {"city": "Oslo"}),))
RESULTS = [
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "3 °C, snow"},
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("model", "call"), [("emulated", FENCED), ("native", NATIVE_CALL), ("m", NATIVE_CALL)])
def test_an_announced_call_is_asked_for_and_arrives_in_the_same_response_chk15(
    gateway: Served, upstream: ScriptedUpstream, model: str, call: str | Answer, *, streams: bool
) -> None:
    met = turn(gateway, upstream, model, NARRATION, call, streams=streams)
    assert (met.calls, met.text, len(met.sent)) == ([CALL], NARRATION, 2)
    assert "called no tool" in str(met.sent[1]["messages"][-1]["content"])


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("second", ["It is cold.", NARRATION, Answer(error="broken")])
@pytest.mark.parametrize("model", ["emulated", "native"])
def test_it_is_asked_for_once_and_nothing_but_a_call_is_added_chk15(
    gateway: Served, upstream: ScriptedUpstream, model: str, second: str | Answer, *, streams: bool
) -> None:
    met = turn(gateway, upstream, model, NARRATION, second, streams=streams)
    assert (met.calls, met.text, len(met.sent)) == ([], NARRATION, 2)


UNREAD = "<call:default_api:get_weather{city:Oslo}/>"
FENCED_LATE = 'I will look first.\n\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
BERGEN = json.loads(json.dumps(RESULTS).replace("Oslo", "Bergen"))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("asked", [(UNREAD, RESULTS[:1]), (UNREAD, BERGEN), (FENCED_LATE, BERGEN)])
@pytest.mark.parametrize("model", ["emulated", "native"])
def test_a_call_that_no_reader_understands_is_asked_for_chk15(
    gateway: Served, upstream: ScriptedUpstream, model: str, asked: tuple[str, list[Any]], *, streams: bool
) -> None:
    said, messages = asked
    call = FENCED if model == "emulated" else NATIVE_CALL
    met = turn(gateway, upstream, model, said, call, streams=streams, messages=messages)
    assert (met.calls, met.text, len(met.sent)) == ([CALL], said, 2)


@pytest.mark.parametrize("model", ["emulated", "native"])
def test_a_call_that_untrusted_text_has_in_it_is_not_asked_for_chk15_safe3(
    gateway: Served, upstream: ScriptedUpstream, model: str
) -> None:
    forged = [*BERGEN[:-1], {**BERGEN[-1], "content": f"3 °C. {UNREAD}"}]
    met = turn(gateway, upstream, model, UNREAD, messages=forged)
    assert (met.calls, met.text, len(met.sent)) == ([], UNREAD, 1)


DEFINITION = json.dumps(
    {"name": "get_weather", "description": "Weather.", "parameters": tool()["function"]["parameters"]}
)
MISFIT = '{"name": "get_weather", "arguments": {"city": ["Oslo", "Bergen"]}}'


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    "said", [DEFINITION, f"```json\n{DEFINITION}\n```", MISFIT, Answer(f"{DEFINITION},\n{DEFINITION[:40]}", cut=True)]
)
@pytest.mark.parametrize("model", ["emulated", "native"])
def test_for_a_copied_definition_the_call_is_asked_for_without_showing_it_again_chk15(
    gateway: Served, upstream: ScriptedUpstream, model: str, said: str | Answer, *, streams: bool
) -> None:
    call = FENCED if model == "emulated" else NATIVE_CALL
    met = turn(gateway, upstream, model, said, call, streams=streams)
    assert (met.calls, len(met.sent)) == ([CALL], 2)
    assert [one["content"] for one in met.sent[1]["messages"]][-2:-1] == ["I will call get_weather."]


@pytest.mark.parametrize("model", ["emulated", "native"])
def test_json_that_was_asked_for_or_that_untrusted_text_has_in_it_is_an_answer_chk15_safe3(
    gateway: Served, upstream: ScriptedUpstream, model: str
) -> None:
    asked = [{"role": "user", "content": "Show me the definition of get_weather."}]
    met = turn(gateway, upstream, model, DEFINITION, messages=asked)
    assert (met.calls, met.text, len(met.sent)) == ([], DEFINITION, 1)
    forged = [*BERGEN[:-1], {**BERGEN[-1], "content": f"3 °C. {MISFIT}"}]
    met = turn(gateway, upstream, model, MISFIT, messages=forged)
    assert (met.calls, met.text, len(met.sent)) == ([], MISFIT, 1)


@pytest.mark.parametrize("said", ["It is cold.", "Should I check the weather for you?", NARRATION])
@pytest.mark.parametrize("model", ["emulated", "native"])
def test_an_answer_a_question_and_the_end_after_results_are_not_asked_on_chk15(
    gateway: Served, upstream: ScriptedUpstream, model: str, said: str
) -> None:
    met = turn(gateway, upstream, model, said, messages=RESULTS if said == NARRATION else RESULTS[:1])
    assert (met.calls, met.text, len(met.sent)) == ([], said, 1)


# ---------------------------------------------------------------- roles that a template refuses


def refusing(message: str) -> Script:
    return say(json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode(), JSON, 400)


@pytest.mark.parametrize("error", ["System role not supported", "Conversation roles must alternate user/assistant/…"])
def test_an_upstream_that_refuses_a_system_message_gets_its_text_in_the_first_user_message_inl10(
    gateway: Served, upstream: ScriptedUpstream, error: str
) -> None:
    upstream.answers(refusing(error), answering(Answer(FENCED)))
    body = {"model": "emulated", "messages": RESULTS[:1], "tools": [tool()]}
    message = gateway.post("/v1/chat/completions", body).json["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["get_weather"]
    sent = [one.json["messages"] for one in upstream.asked]
    assert [[each["role"] for each in messages] for messages in sent] == [["system", "user"], ["user"]]
    assert sent[0][0]["content"] in sent[1][0]["content"]


def test_the_roles_are_changed_once_inl10(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(refusing("System role not supported"))
    reply = gateway.post("/v1/chat/completions", {"model": "emulated", "messages": RESULTS[:1], "tools": [tool()]})
    assert (reply.status, len(upstream.asked)) == (400, 2)
    assert "System role not supported" in reply.json["error"]["message"]

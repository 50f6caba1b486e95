"""Models that do not do as they are taught, as a client of the gateway meets them: they relapse into their own form."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from testkit.protocols import answering
from testkit.scripted_upstream import ScriptedUpstream
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, serving, towards
from toolspeak.config.shape import Model
from toolspeak.engine.settings import Mode, Settings

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

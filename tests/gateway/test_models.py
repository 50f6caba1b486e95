"""Which model of which upstream a name means, and what a client may ask for beside its protocol (MODE-1)."""

import asyncio
from collections.abc import Generator

import pytest

from testkit.grammar import read_stream, read_whole
from testkit.protocols import WIRES, answering, error_faults, message_of, question
from testkit.scripted_upstream import Asked, ScriptedUpstream, listening, refuse
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, key, serving, towards
from toolspeak.config.shape import Config, Model, Server
from toolspeak.engine.settings import Mode, Settings

COLD = Answer("It is cold.")
CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')


@pytest.fixture(scope="module")
def one() -> Generator[ScriptedUpstream]:
    with listening(("a", "b:latest", "shared")) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def two() -> Generator[ScriptedUpstream]:
    with listening(("c", "shared")) as upstream:
        yield upstream


@pytest.fixture(autouse=True)
def _both_answer(one: ScriptedUpstream, two: ScriptedUpstream) -> None:
    one.answers(answering(COLD))
    two.answers(answering(COLD))


def described(one: ScriptedUpstream, two: ScriptedUpstream, default: str) -> Config:
    upstreams = (towards(one, name="one"), towards(two, "anthropic", name="two"))
    aliases = (
        Model("fast", "two", "c"),
        Model("a", "two", "c-instead"),
        Model("strict", "one", "b", Settings(mode=Mode.FORCE)),
    )
    return config_of(*upstreams, models=aliases, default=default)


@pytest.fixture(scope="module")
def gateway(one: ScriptedUpstream, two: ScriptedUpstream) -> Generator[Served]:
    with serving(described(one, two, "fast")) as served:
        yield served


def asked_for(gateway: Served, name: str, wire: str = "openai_chat") -> Reply:
    asked = question(wire, model=name)
    return gateway.post(asked.path, asked.body)


def came(one: ScriptedUpstream, two: ScriptedUpstream) -> tuple[str, str]:
    """Return which upstream was asked, and for which model."""
    (asked,) = [*one.asked, *two.asked]
    return "one" if one.asked else "two", asked.json["model"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("fast", ("two", "c")),
        ("fast:latest", ("two", "c")),
        ("a", ("two", "c-instead")),
        ("one:a", ("one", "a")),
        ("one/a", ("one", "a")),
        ("two:anything:7b", ("two", "anything:7b")),
        ("b", ("one", "b:latest")),
        ("b:latest", ("one", "b:latest")),
        ("c", ("two", "c")),
        ("shared", ("one", "shared")),
        ("two:shared", ("two", "shared")),
        ("claude-sonnet-4-5", ("two", "c")),
        ("", ("two", "c")),
        ("three:a", ("two", "c")),
        ("FAST", ("two", "c")),
    ],
)
def test_a_name_means_one_model(
    gateway: Served, one: ScriptedUpstream, two: ScriptedUpstream, name: str, meant: tuple[str, str]
) -> None:
    reply = asked_for(gateway, name)
    assert reply.status == 200
    assert came(one, two) == meant
    assert reply.json["model"] == name, "clients compare it with what they asked for"


@pytest.mark.parametrize("wire", WIRES)
def test_every_protocol_finds_the_same_model(
    gateway: Served, one: ScriptedUpstream, two: ScriptedUpstream, wire: str
) -> None:
    assert asked_for(gateway, "two:c", wire).status == 200
    assert came(one, two) == ("two", "c")


def test_without_a_default_an_unknown_name_is_the_first_model(one: ScriptedUpstream, two: ScriptedUpstream) -> None:
    with serving(described(one, two, "")) as gateway:
        assert asked_for(gateway, "gpt-5").status == 200
        assert came(one, two) == ("one", "a")


def test_where_nothing_is_listed_a_name_is_passed_on() -> None:
    with listening(()) as upstream, serving(config_of(towards(upstream))) as gateway:
        upstream.answers(answering(COLD))
        assert asked_for(gateway, "gpt-5").status == 200
        assert upstream.asked[0].json["model"] == "gpt-5"
        assert gateway.ask("GET", "/v1/models").json["data"] == []


def test_an_upstream_that_is_not_there_does_not_stop_the_others(two: ScriptedUpstream) -> None:
    gone = towards(two, name="gone", url="http://127.0.0.1:1/v1", retries=0)
    with serving(config_of(gone, towards(two, "anthropic", name="two"))) as gateway:
        assert [model["id"] for model in gateway.ask("GET", "/v1/models").json["data"]] == ["c", "shared"]
        assert asked_for(gateway, "c").status == 200
        assert asked_for(gateway, "gone:x").status == 502


def test_the_list_of_an_upstream_is_asked_for_now_and_then_only(one: ScriptedUpstream) -> None:
    with serving(config_of(towards(one))) as gateway:
        one.answers(answering(COLD))
        for name in ("a", "unknown", "a", "unknown-2"):
            asked_for(gateway, name)
        gateway.ask("GET", "/v1/models")
        assert len(one.listings) <= 1


# ---------------------------------------------------------------- headers


def told(gateway: Served, stream: bool = False, **headers: str) -> Reply:
    asked = question("openai_chat", stream=stream, model="one:a")
    return gateway.post(asked.path, asked.body, {f"x-toolspeak-{name}": value for name, value in headers.items()})


def test_a_client_may_set_the_mode_of_one_request_mode1(gateway: Served, one: ScriptedUpstream) -> None:
    for mode, native in (("off", True), ("auto", True), ("fallback", True), ("force", False)):
        one.answers(answering(CALL))
        reply = told(gateway, mode=mode)
        assert reply.headers["x-toolspeak-plan"].startswith("native" if mode == "auto" else mode)
        assert ("tools" in one.asked[0].json) == native
    assert told(gateway).headers["x-toolspeak-plan"].startswith("native"), "the next request has its own"


def test_a_models_mode_is_less_than_the_requests_mode1(gateway: Served, one: ScriptedUpstream) -> None:
    one.answers(answering(CALL))
    assert asked_for(gateway, "strict").headers["x-toolspeak-plan"].startswith("force inline fenced checked")
    asked = question("openai_chat", model="strict")
    reply = gateway.post(asked.path, asked.body, {"x-toolspeak-mode": "off"})
    assert reply.headers["x-toolspeak-plan"] == "off checked: the mode is off"


def test_a_client_may_say_how_calls_are_kept_in_form_and_hears_what_is_accepted_chk8(
    gateway: Served, one: ScriptedUpstream
) -> None:
    one.answers(answering(CALL))
    asked = question("openai_chat")
    assert gateway.post(asked.path, asked.body, {"x-toolspeak-constraint": "text"}).status == 200
    reply = gateway.post(asked.path, asked.body, {"x-toolspeak-constraint": "always"})
    assert reply.status == 400
    assert b"'always' is not one of off, retry, text, json" in reply.body


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_the_plan_and_the_warning_stand_in_the_head_mode9(gateway: Served, one: ScriptedUpstream, stream: bool) -> None:
    one.answers(answering(CALL))
    reply = told(gateway, stream, mode="force")
    assert reply.headers["x-toolspeak-plan"] == "force inline fenced checked: the mode is force"
    assert reply.headers["x-toolspeak-warning"] == "tool calls emulated"
    found = read_stream("openai_chat", reply.body) if stream else read_whole("openai_chat", reply.body)
    assert [call.name for call in found.calls] == ["get_weather"]
    assert "x-toolspeak-warning" not in told(gateway, stream, mode="off").headers


def test_a_client_may_set_dialect_strategy_and_release_mode1(gateway: Served, one: ScriptedUpstream) -> None:
    one.answers(answering(Answer('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>')))
    reply = told(gateway, mode="force", dialect="hermes", release="buffered")
    assert reply.headers["x-toolspeak-plan"].startswith("force inline hermes buffered")
    assert "<tool_call>" in one.asked[0].body.decode()
    one.answers(answering(Answer('{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}')))
    reply = told(gateway, mode="force", strategy="decision")
    assert reply.headers["x-toolspeak-plan"].startswith("force decision decision_json")


WRONG = {
    "mode": ("always", "off, fallback, force, auto"),
    "strategy": ("guess", "inline"),
    "release": ("now", "eager"),
    "dialect": ("klingon", "fenced"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_word_that_nobody_knows_is_refused_with_those_that_are_mode1(
    gateway: Served, one: ScriptedUpstream, wire: str, wrong: str
) -> None:
    value, word = WRONG[wrong]
    asked = question(wire, model="one:a")
    reply = gateway.post(asked.path, asked.body, {f"x-toolspeak-{wrong}": value})
    assert reply.status == 400
    assert error_faults(wire, 400, reply.json) == []
    assert value in message_of(wire, reply.json)
    assert word in message_of(wire, reply.json)
    assert not one.asked


REFUSAL = refuse(400, {"error": {"message": "a does not support tools", "type": "api_error"}})
TAKEN = "force inline fenced checked: native (tools refused), then inline"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_the_head_tells_the_way_that_was_taken_obs5(one: ScriptedUpstream, wire: str, stream: bool) -> None:
    asked = question(wire, stream=stream)
    with serving(config_of(towards(one))) as gateway:
        one.answers(REFUSAL, answering(CALL))
        reply = gateway.post(asked.path, asked.body, asked.headers)
    assert (reply.headers["x-toolspeak-plan"], reply.headers["x-toolspeak-warning"]) == (TAKEN, "tool calls emulated")
    assert b"x-toolspeak" not in reply.body


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_tells_a_plan_that_changed_after_its_head_in_a_comment_at_its_end_obs5(
    one: ScriptedUpstream, wire: str
) -> None:
    async def late(asked: Asked) -> None:
        await asyncio.sleep(0.3)  # by now the head has left with a keep-alive
        await REFUSAL(asked)

    asked = question(wire, stream=True)
    with serving(config_of(towards(one), server=Server(keep_alive=0.1))) as gateway:
        one.answers(late, answering(CALL))
        reply = gateway.post(asked.path, asked.body, asked.headers)
    assert reply.headers["x-toolspeak-plan"].startswith("native checked: nothing is known")
    assert "x-toolspeak-warning" not in reply.headers
    found = read_stream(wire, reply.body)
    assert [(call.name, call.arguments) for call in found.calls] == [("get_weather", {"city": "Oslo"})]
    told = f": x-toolspeak-plan: {TAKEN}\n\n".encode()
    if wire in ("gemini", "ollama"):  # their clients fail on a comment
        assert b"x-toolspeak" not in reply.body
    else:
        assert reply.body.endswith(told)


def test_the_first_answer_that_is_returned_after_all_is_the_way_of_the_plan_obs5(one: ScriptedUpstream) -> None:
    asked = question("openai_chat")
    with serving(config_of(towards(one))) as gateway:
        one.answers(answering(Answer("It is cold.")), answering(Answer("No.")))
        reply = gateway.post(asked.path, asked.body, {**asked.headers, "x-toolspeak-mode": "fallback"})
    assert reply.json["choices"][0]["message"]["content"] == "It is cold."
    way, _, why = reply.headers["x-toolspeak-plan"].partition(": ")
    assert way.startswith("fallback ")
    assert why == "native first (no calls), then inline (no better than the first), then first answer"


def test_an_upstream_that_refuses_tools_is_asked_without_them_and_not_again_mode3(one: ScriptedUpstream) -> None:
    refused = refuse(400, {"error": {"message": "a does not support tools", "type": "api_error"}})

    async def script(asked: Asked) -> None:
        await (refused if "tools" in asked.json else answering(CALL))(asked)

    tenants = ("sk-first-key", "sk-second-key", "sk-third-key")
    keys = tuple(key(secret, secret) for secret in (*tenants, "sk-fourth-key"))
    with serving(config_of(towards(one), keys=keys)) as gateway:
        for number, wire in enumerate(WIRES):
            one.answers(script)
            asked = question(wire, stream=True)
            shown = {**asked.headers, "authorization": f"Bearer {tenants[min(number, 2)]}"}
            found = read_stream(wire, gateway.post(asked.path, asked.body, shown).body)
            assert [(call.name, call.arguments) for call in found.calls] == [("get_weather", {"city": "Oslo"})], wire
            # Each tenant is refused once: a client could forge a refusal, so it counts for its own tenant (CAP-6).
            assert len(one.asked) == (2 if number < 3 else 1), "what this tenant was refused is known"
        # Three turns of two tenants are enough without a probe: a tenant that was never refused is helped by them.
        one.answers(script)
        asked = question(WIRES[0], stream=True)
        gateway.post(asked.path, asked.body, {**asked.headers, "authorization": "Bearer sk-fourth-key"})
        assert len(one.asked) == 1, "what several tenants were refused is known"

"""The synchronous client: turns, streams, conversations, overrides, against a model server on loopback."""

import json
from collections.abc import Callable

import pytest

from testkit.loopback import Got, Loopback, Out
from testkit.vendor_answers import Answer as Vendor
from tests.unit.client.scene import CALL, COLD, USAGE, WRONG, bodies, endless, served, soon
from tests.unit.runtime.scene import WEATHER
from toolspeak import Client, Sampling, Settings, TextDelta, UpstreamFailed, tool_result
from toolspeak.client import Answer
from toolspeak.engine.plan import Way
from toolspeak.engine.settings import Mode
from toolspeak.errors import BadField
from toolspeak.facts.model import Support
from toolspeak.ir.event import CallEnded, CallStarted, Finished, StopReason, Usage
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Message, Reasoning, Role, Text
from toolspeak.ir.turn import fold
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream, failed

ASKED = "Is it cold in Oslo?"
NATIVE = Vendor(calls=(("call_1", "get_weather", {"city": "Oslo"}),))


# ---------------------------------------------------------------- turns


def test_a_model_without_tools_calls_one_all_the_same() -> None:
    with served(CALL) as server, Client(server.url) as client:
        answer = client.chat(ASKED, tools=[WEATHER])
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [("get_weather", {"city": "Oslo"})]
    assert answer.text == "I will look.\n"
    assert (answer.stop, answer.requests) == (StopReason.CALLS, 2)
    assert answer.warnings == ("tool calls emulated",)
    assert answer.plan.line == "native checked: nothing is known: native first, emulated if that is refused"
    assert answer.turn is answer.turn
    assert ["tools" in body for body in bodies(server)] == [True, False]


def test_a_model_with_tools_calls_one_natively() -> None:
    with served(NATIVE, refuses=False) as server, Client(server.url) as client:
        answer = client.chat(ASKED, tools=[WEATHER])
    assert (len(answer.calls), answer.requests, answer.warnings) == (1, 1, ())
    assert bodies(server)[0]["model"] == "small"


def test_without_tools_it_is_a_plain_question() -> None:
    with served(Vendor(text=COLD, reasoning="Oslo is in the north.")) as server, Client(server.url) as client:
        answer = client.chat(ASKED)
    assert (answer.text, answer.reasoning, answer.stop) == (COLD, "Oslo is in the north.", StopReason.END)
    assert (answer.calls, answer.warnings, answer.plan.way) == ((), (), Way.PLAIN)
    assert answer.message == Message(Role.ASSISTANT, (Reasoning("Oslo is in the north."), Text(COLD)))


def test_usage_is_the_sum_over_hidden_requests_mode9() -> None:
    with served(WRONG, CALL) as server, Client(server.url) as client:
        answer = client.chat(ASKED, tools=[WEATHER], mode="force")
    assert answer.requests == 2
    assert answer.usage == Usage(2 * USAGE[0], 2 * USAGE[1])
    assert [complaint.name for complaint in answer.complaints] == ["get_weather"]


def test_a_conversation_goes_on_with_the_answer_and_the_result() -> None:
    with served(CALL, COLD) as server, Client(server.url) as client:
        first = client.chat(ASKED, tools=[WEATHER], mode="force")
        result = tool_result(first.calls[0], {"degrees": -4})
        second = client.chat([ASKED, first.message, result], tools=[WEATHER], mode="force")
    assert second.text == COLD
    said = json.dumps(bodies(server)[1]["messages"])
    assert said.count("get_weather") > 1
    assert "degrees" in said


def test_a_native_conversation_pairs_calls_and_results_by_their_ids() -> None:
    with served(NATIVE, COLD, refuses=False) as server, Client(server.url) as client:
        first = client.chat(ASKED, tools=[WEATHER])
        second = client.chat([ASKED, first.message, tool_result(first.calls[0], "-4")], tools=[WEATHER])
        third = [{"role": "user", "content": ASKED}, first.message]
        assert second.text == COLD
        assert client.plan([*third, {"role": "tool", "tool_call_id": "call_1", "content": "-4"}]).way is Way.NATIVE
    messages = bodies(server)[1]["messages"]
    assert isinstance(messages, list)
    assert (messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]) == ("call_1", "call_1")


def test_wishes_reach_the_upstream() -> None:
    with served(COLD) as server, Client(server.url) as client:
        client.chat(ASKED, model="large", max_tokens=9, temperature=0.5, sampling=Sampling(seed=7))
    body = bodies(server)[0]
    assert (body["model"], body["temperature"], body["seed"]) == ("large", 0.5, 7)
    assert 9 in (body.get("max_tokens"), body.get("max_completion_tokens"))


def test_a_tool_can_be_chosen_by_its_name_chk1() -> None:
    with served(CALL) as server, Client(server.url) as client:
        answer = client.chat(ASKED, tools=[WEATHER, {"name": "get_time"}], choice="get_weather", mode="force")
    assert [call.name for call in answer.calls] == ["get_weather"]


def test_settings_of_a_call_are_heard_before_those_of_the_client() -> None:
    settings = Settings(mode=Mode.FORCE, dialect="hermes", retries=0)
    with Client("http://127.0.0.1:9/v1", settings=settings, model="m") as client:
        first = client.plan(ASKED, [WEATHER])
        second = client.plan(ASKED, [WEATHER], mode="fallback", settings=Settings(retries=5))
    assert (first.way, first.dialect, first.retries) == (Way.FORCE, "hermes", 0)
    assert (second.way, second.dialect, second.retries) == (Way.FALLBACK, "hermes", 5)


def test_a_plan_is_made_without_a_question() -> None:
    with served() as server, Client(server.url) as client:
        plan = client.plan(ASKED, [WEATHER], choice="required")
        assert plan.line == "native buffered: nothing is known: native first, emulated if that is refused"
        assert client.plan(ASKED).line == "plain checked: the request has no tools"
    assert not bodies(server)


# ---------------------------------------------------------------- models


def test_models_are_those_that_the_upstream_lists() -> None:
    with served() as server, Client(server.url) as client:
        assert client.models() == ["small", "large"]


@pytest.mark.parametrize(
    ("own", "said", "sent"),
    [
        ("", "", "small"),
        ("large", "", "large"),
        ("large", "small", "small"),
        ("unlisted", "", "unlisted"),
    ],
)
def test_a_model_that_is_said_is_asked_and_no_other(own: str, said: str, sent: str) -> None:
    with served(COLD) as server, Client(server.url, model=own) as client:
        client.chat(ASKED, model=said)
    assert bodies(server)[0]["model"] == sent


# ---------------------------------------------------------------- streams


def test_a_stream_gives_events_and_then_the_answer() -> None:
    with served(CALL, COLD) as server, Client(server.url) as client:
        stream = client.stream(ASKED, tools=[WEATHER])
        events = list(stream)
        assert [type(event) for event in events[-4:-2]] == [CallStarted, type(events[-3])]
        assert isinstance(events[-2], CallEnded)
        assert isinstance(events[-1], Finished)
        assert fold(events) == stream.answer.turn
        assert stream.answer.requests == 2
        assert "".join(e.text for e in client.stream(ASKED) if isinstance(e, TextDelta)) == COLD
    assert [body["stream"] for body in bodies(server)] == [True, True, True]


def test_the_events_of_a_stream_come_once() -> None:
    with served(COLD) as server, Client(server.url) as client:
        stream = client.stream(ASKED)
        assert list(stream)
        assert list(stream) == []
        assert stream.answer.text == COLD
    assert len(bodies(server)) == 1


def test_a_stream_that_nobody_reads_asks_nothing() -> None:
    with served() as server, Client(server.url) as client:
        stream = client.stream(ASKED)
        with pytest.raises(RuntimeError, match="there is no answer yet: read the stream to its end"):
            assert stream.answer
        stream.close()
        with pytest.raises(RuntimeError, match="the stream was closed before its end"):
            list(stream)
    assert not server.got


def test_text_comes_while_the_model_still_writes() -> None:
    with served(endless) as server, Client(server.url) as client, client.stream(ASKED) as stream:
        texts = (event.text for event in stream if isinstance(event, TextDelta))
        assert [next(texts) for _ in range(3)] == ["and on "] * 3
        assert server.gone == 0


def leave_by_break(client: Client) -> None:
    for _ in client.stream(ASKED):
        break


def leave_by_error(client: Client) -> None:
    def read() -> None:
        for _ in client.stream(ASKED):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()


def leave_by_with(client: Client) -> None:
    with client.stream(ASKED) as stream:
        next(iter(stream))
    with pytest.raises(RuntimeError, match="read the stream to its end"):
        assert stream.answer


def leave_by_close(client: Client) -> None:
    stream = client.stream(ASKED)
    events = iter(stream)
    next(events)
    stream.close()
    with pytest.raises(RuntimeError, match="the stream was closed before its end"):
        list(events)


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_error, leave_by_with, leave_by_close])
def test_who_leaves_a_stream_early_closes_the_upstream(leave: Callable[[Client], None]) -> None:
    with served(endless, COLD) as server, Client(server.url) as client:
        leave(client)
        soon(lambda: server.gone == 1)
        assert client.chat(ASKED).text == COLD


# ---------------------------------------------------------------- failures


async def too_long(_: Got, out: Out) -> None:
    await out.whole(400, b'{"error": {"message": "too long", "code": "context_length_exceeded"}}')


async def breaks_off(_: Got, out: Out) -> None:
    await out.begin()
    await out.piece(b'data: {"choices": [{"index": 0, "delta": {"content": "It is"}}]}\n\n')
    out.writer.close()


def test_a_failed_upstream_raises_with_its_kind_and_status() -> None:
    with served(too_long) as server, Client(server.url) as client, pytest.raises(UpstreamFailed, match="too") as caught:
        client.chat(ASKED)
    assert (caught.value.kind, caught.value.upstream_status) == (FailureKind.CONTEXT_LENGTH, 400)


def test_a_stream_that_breaks_off_raises_after_what_came_p6() -> None:
    with served(breaks_off) as server, Client(server.url) as client:
        stream = client.stream(ASKED)
        texts: list[str] = []
        with pytest.raises(UpstreamFailed, match="broke off") as caught:
            texts.extend(event.text for event in stream if isinstance(event, TextDelta))
        assert texts == ["It is"]
        assert caught.value.kind == FailureKind.DISCONNECTED
        with pytest.raises(RuntimeError, match="there is no answer"):
            assert stream.answer


def test_where_nobody_listens_it_is_said_where() -> None:
    with served() as server:
        url = server.url
    with Client(url, model="m") as client, pytest.raises(UpstreamFailed, match=r"no connection .* Connection refused"):
        client.chat(ASKED)


@pytest.mark.parametrize("ask", [Client.chat, Client.stream, Client.plan])
def test_a_bad_question_raises_before_anybody_is_asked(ask: Callable[..., object]) -> None:
    with served() as server, Client(server.url) as client:
        with pytest.raises(BadField, match=r"messages\[0\]\.role"):
            ask(client, [{"role": "usr"}])
        with pytest.raises(TypeError, match="'tool' is not an option"):
            ask(client, ASKED, tool=[WEATHER])
    assert not server.got


# ---------------------------------------------------------------- overrides


def place_of(server: Loopback) -> str:
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("name", ["{place}", "{place}:small", "small", "http://{place}/v1", "http://{place}/v1:small"])
def test_an_override_says_what_an_upstream_or_a_model_does_with_tools_cap1(name: str) -> None:
    with served(CALL) as server, Client(server.url) as client:
        client.override(name.format(place=place_of(server)), "none")
        answer = client.chat(ASKED, tools=[WEATHER])
    assert answer.plan.line == "force inline fenced checked: the upstream has no tools"
    assert (answer.requests, len(answer.calls)) == (1, 1)


def test_an_override_of_a_model_is_heard_before_one_of_its_upstream_cap1() -> None:
    with served() as server, Client(server.url) as client:
        client.override(place_of(server), Support.NONE)
        client.override(f"{place_of(server)}:large", Support.NATIVE)
        assert client.plan(ASKED, [WEATHER], model="large").way is Way.NATIVE
        assert client.plan(ASKED, [WEATHER], model="small").way is Way.FORCE
        client.override(place_of(server), Support.LEAKS)
        assert client.plan(ASKED, [WEATHER], model="small").why == "the upstream has tools, and leaks some calls"


@pytest.mark.parametrize("key", ["{place}", "{place}:sm*", "http://{place}/v1:small", "compatible"])
def test_capabilities_are_said_with_the_client_cap1(key: str) -> None:
    with served() as server:
        said = {key.format(place=place_of(server)): "none"}
        with Client(server.url, capabilities=said) as client:
            assert client.plan(ASKED, [WEATHER]).way is Way.FORCE
            client.override("small", "openai")
            assert client.plan(ASKED, [WEATHER]).why == "the upstream has tools"


def test_capabilities_hold_for_a_script_too_cap1() -> None:
    script = AsyncScriptedUpstream(ScriptedUpstream())
    with Client(script, model="qwen3", capabilities={"upstream:qwen*": "none"}) as client:
        assert client.plan(ASKED, [WEATHER]).line == "force inline hermes checked: the upstream has no tools"


def test_a_capability_that_is_none_is_an_error_at_once_cap1() -> None:
    with pytest.raises(BadField, match=r"capabilities\['groq'\]: 'yes' is not one of none, openai, advanced"):
        Client("groq", capabilities={"groq": "yes"})


def test_an_override_beats_what_is_learned_of_a_table_cap3() -> None:
    with Client("anthropic", key="k", model="m") as client:
        client.override("anthropic", "leaks")
        assert client.plan(ASKED, [WEATHER]).why == "the upstream has tools, and leaks some calls"


def test_a_refusal_is_remembered_by_the_client_and_an_override_speaks_against_it() -> None:
    with served(CALL, CALL) as server, Client(server.url) as client:
        assert client.chat(ASKED, tools=[WEATHER]).requests == 2
        assert client.chat(ASKED, tools=[WEATHER]).requests == 1
        client.override("small", "native")
        assert client.plan(ASKED, [WEATHER]).way is Way.NATIVE


def test_a_script_that_refuses_tools_is_remembered_too() -> None:
    script = ScriptedUpstream(failed(FailureKind.TOOLS_UNSUPPORTED), CALL, CALL)
    with Client(AsyncScriptedUpstream(script)) as client:
        assert [client.chat(ASKED, tools=[WEATHER]).requests for _ in range(2)] == [2, 1]


def test_an_override_is_for_one_client_only() -> None:
    with served() as server, Client(server.url) as one, Client(server.url) as other:
        one.override(place_of(server), "none")
        assert one.plan(ASKED, [WEATHER]).way is Way.FORCE
        assert other.plan(ASKED, [WEATHER]).way is Way.NATIVE


def test_an_unknown_support_is_an_error_that_names_all() -> None:
    with Client("groq") as client, pytest.raises(BadField, match="'nativ' is not one of native, none, leaks, unknown"):
        client.override("groq", "nativ")


# ---------------------------------------------------------------- your own tests


def test_an_upstream_can_be_a_script() -> None:
    script = ScriptedUpstream(CALL, COLD)
    with Client(AsyncScriptedUpstream(script), model="m") as client:
        first: Answer = client.chat(ASKED, tools=[WEATHER], mode="force")
        call: Call = first.calls[0]
        second = client.chat([ASKED, first.message, tool_result(call, "-4")], tools=[WEATHER], mode="force")
        assert (call.name, second.text) == ("get_weather", COLD)
        assert client.models() == []
        client.override("upstream:m", "none")
        assert client.plan(ASKED, [WEATHER]).way is Way.FORCE
    assert [request.model for request in script.requests] == ["m", "m"]
    assert all(id.startswith("emulated_") for id in [call.id])

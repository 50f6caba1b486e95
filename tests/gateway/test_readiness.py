"""The gateway looks at its upstreams, says which do not answer and what to start, and tells load balancers (OBS-8)."""

import socket
import threading
from collections.abc import Generator

import pytest

from testkit.protocols import WIRES, answering, error_faults, message_of, question, sides
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import UnknownModels, Upstream
from toolspeak.gateway import readiness
from toolspeak.runtime import directory

NOBODY = Upstream("box", "http://127.0.0.1:9/v1", preset="llamacpp", retries=0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == readiness.__name__]


@pytest.fixture
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("qwen3", "llama-3.3")) as scripted:
        scripted.answers(answering(Answer("It is cold.")))
        yield scripted


def test_a_dead_upstream_is_named_with_what_to_start_obs8(caplog: pytest.LogCaptureFixture) -> None:
    """It went unnoticed: no warning, `/health` was ok, `/v1/models` was empty."""
    with serving(config_of(NOBODY)) as gateway:
        assert soon(lambda: bool(warnings(caplog)), 5)
        ready = gateway.ask("GET", "/ready")
        assert gateway.ask("GET", "/health").status == 200
    (line,) = warnings(caplog)
    assert line == (
        "upstream box does not answer: no connection to the upstream at 127.0.0.1:9: Connection refused. "
        "Start it (llama-server -m MODEL.gguf), or run a model here: toolspeak up MODEL.gguf"
    )
    assert ready.status == 503
    assert ready.json["status"] == "unavailable"
    assert "llama-server" in ready.json["reasons"]["box"]


def test_one_upstream_that_answers_is_enough_obs8(upstream: ScriptedUpstream) -> None:
    with serving(config_of(NOBODY, towards(upstream))) as gateway:
        ready = gateway.ask("GET", "/ready")
    assert (ready.status, ready.json["answering"], ready.json["upstreams"]) == (200, 1, 2)
    assert list(ready.json["reasons"]) == ["box"]


def test_strangers_do_not_learn_where_requests_go_obs8() -> None:
    with serving(config_of(NOBODY, keys=(key("k"),))) as gateway:
        plain, known = gateway.ask("GET", "/ready"), gateway.ask("GET", "/ready", None, {"x-api-key": "k"})
    assert plain.json == {"status": "unavailable", "answering": 0, "upstreams": 1}
    assert "box" in known.json["reasons"]


def test_an_upstream_that_comes_back_is_noticed_obs8(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", "toolspeak")
    monkeypatch.setattr(readiness, "RECHECK", 0.1)
    monkeypatch.setattr(directory, "_FRESH_FAILURE", 0.05)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # not listening: connections are refused, and no other program gets the port
        port = held.getsockname()[1]
        with serving(config_of(Upstream("box", f"http://127.0.0.1:{port}/v1"))) as gateway:
            assert soon(lambda: bool(warnings(caplog)), 5)
            held.listen()
            ended = threading.Event()
            listener = threading.Thread(target=_list_models, args=(held, ended))
            listener.start()
            assert soon(lambda: "upstream box answers again" in warnings(caplog), 5)
            assert gateway.ask("GET", "/ready").status == 200
            ended.set()
            listener.join()
    assert len(warnings(caplog)) == 2, "one line for each change"


def _list_models(listening: socket.socket, ended: threading.Event) -> None:
    body = b'{"data": [{"id": "m"}]}'
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    listening.settimeout(0.05)
    while not ended.is_set():
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection:
            connection.recv(65536)
            connection.sendall(head % len(body) + body)


@pytest.mark.parametrize("wire", WIRES)
def test_a_list_of_models_that_no_upstream_gave_is_an_error_p6(wire: str) -> None:
    lists = [side for side in sides(wire) if side.method == "GET" and side.path.endswith(("/models", "/tags"))]
    with serving(config_of(NOBODY)) as gateway:
        for side in lists:
            reply = gateway.ask("GET", side.path, None, side.headers)
            assert error_faults(wire, reply.status, reply.json) == []
            assert reply.status in (503, 529)
            assert "no upstream answers" in message_of(wire, reply.json)


# ---------------------------------------------------------------- unknown names


def ask(gateway: Served, name: str, wire: str = "openai_chat") -> tuple[int, str]:
    asked = question(wire, model=name)
    reply = gateway.post(asked.path, asked.body)
    return reply.status, "" if reply.status == 200 else message_of(wire, reply.json)


@pytest.mark.parametrize("wire", WIRES)
def test_a_strict_gateway_refuses_unknown_names_and_tells_near_ones_obs9(upstream: ScriptedUpstream, wire: str) -> None:
    with serving(config_of(towards(upstream), unknown_models=UnknownModels.STRICT)) as gateway:
        assert ask(gateway, "qwen3", wire) == (200, "")
        assert ask(gateway, "up:qwen3", wire) == (200, "")
        status, message = ask(gateway, "qwen-3", wire)
        assert status == 404
        assert "there is no model 'qwen-3' here: did you mean 'qwen3'?" in message
        assert ask(gateway, "up:qwen-3", wire)[0] == 404
        assert len(upstream.asked) == 2


def test_by_default_the_first_model_serves_unknown_names_obs9(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream))) as gateway:
        assert ask(gateway, "gpt-5.5") == (200, "")
    assert upstream.asked[0].json["model"] == "qwen3"


def test_near_names_are_those_that_the_key_may_use_obs9(upstream: ScriptedUpstream) -> None:
    keys = (key("k", models=("up:llama-3.3",)),)
    with serving(config_of(towards(upstream), keys=keys, unknown_models=UnknownModels.STRICT)) as gateway:
        asked = question("openai_chat", model="qwen-3")
        reply = gateway.post(asked.path, asked.body, {"x-api-key": "k"})
    assert reply.status == 404
    assert "qwen3" not in message_of("openai_chat", reply.json)


def test_a_name_is_not_unknown_while_its_upstream_may_be_down_obs9(upstream: ScriptedUpstream) -> None:
    """A 404 makes clients give up, and the model may be there again in a minute."""
    with serving(config_of(towards(upstream), NOBODY, unknown_models=UnknownModels.STRICT)) as gateway:
        status, message = ask(gateway, "mistral")
    assert status == 503
    assert "not all upstreams answer (box: no connection" in message

"""Which handler a path means, and what is answered beside turns (WIRE-1, OBS-1, OBS-4)."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from testkit.grammar import read_stream, read_whole
from testkit.protocols import WIRES, answering, error_faults, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, serving, soon, towards
from toolspeak.config.shape import Model
from toolspeak.engine.settings import Mode, Settings
from toolspeak.facts.model import ModelFacts, Support

VERSION = {"anthropic-version": "2023-06-01"}
GOOGLE = {"x-goog-api-key": "x"}


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m", "org/m-2:7b")) as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        yield upstream


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    forced = Model("forced", "up", "m", Settings(mode=Mode.FORCE), ModelFacts(tools=Support.NONE, context_tokens=4096))
    with serving(config_of(towards(upstream), models=(forced,))) as served:
        yield served


PATHS = {
    "openai_chat": ["/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions", "/v1/chat/completions/"],
    "openai_responses": ["/v1/responses", "/responses", "/v1/v1/responses", "/v1/responses/"],
    "anthropic": ["/v1/messages", "/messages", "/v1/v1/messages", "/v1/messages?beta=true"],
    "gemini": [
        "/v1beta/models/m:generateContent",
        "/v1/models/m:generateContent",
        "/models/m:generateContent",
        "/v1/v1beta/models/m:generateContent",
        "/v1beta/v1beta/models/m:generateContent",
        "/v1alpha/models/m:generateContent",
        "/v1beta/models/m%3AgenerateContent",
        "/v1beta/tunedModels/m:generateContent",
        "/v1beta/models/org%2Fm-2:7b:generateContent",
        "/v1beta/models/org/m-2:7b:generateContent",
    ],
    "ollama": ["/api/chat", "/v1/api/chat", "/api/chat/"],
}


@pytest.mark.parametrize(("wire", "path"), [(wire, path) for wire, paths in PATHS.items() for path in paths])
def test_every_spelling_of_a_path_that_clients_use_is_a_turn_wire1(
    gateway: Served, upstream: ScriptedUpstream, wire: str, path: str
) -> None:
    upstream.answers(answering(Answer("It is cold.")))
    reply = gateway.post(path, question(wire).body)
    assert reply.status == 200, reply
    assert read_whole(wire, reply.body).text == "It is cold."
    assert upstream.asked[0].json["model"] == ("org/m-2:7b" if "org" in path else "m")


@pytest.mark.parametrize(
    "path", ["/v1beta/models/m:streamGenerateContent?alt=sse", "/models/m:streamGenerateContent?alt=sse"]
)
def test_google_says_in_the_path_that_it_wants_a_stream_wire1(gateway: Served, path: str) -> None:
    assert read_stream("gemini", gateway.post(path, question("gemini").body).body).text == "It is cold."


def test_the_media_type_of_a_stream_is_the_protocols_wire1(gateway: Served) -> None:
    for wire in WIRES:
        asked = question(wire, stream=True)
        reply = gateway.post(asked.path, asked.body)
        assert reply.headers["content-type"] == ("application/x-ndjson" if wire == "ollama" else "text/event-stream")
        assert reply.headers["cache-control"] == "no-cache"
        assert reply.headers["x-accel-buffering"] == "no"
        assert "content-length" not in reply.headers


# ---------------------------------------------------------------- lists


def names_in(body: dict[str, Any]) -> list[str]:
    return [each.get("id") or each["name"] for each in body.get("data") or body["models"]]


def test_models_as_openai_lists_them_with_their_tool_mode_obs4(gateway: Served) -> None:
    body = gateway.ask("GET", "/v1/models").json
    assert body["object"] == "list"
    assert names_in(body) == ["forced", "m", "org/m-2:7b"]
    for model in body["data"]:
        assert (model["object"], model["owned_by"]) == ("model", "up")
        assert isinstance(model["created"], int)
    assert [model["toolspeak"]["mode"] for model in body["data"]] == ["force", "auto", "auto"]
    assert [model["toolspeak"]["upstream_tools"] for model in body["data"]] == ["none", "unknown", "unknown"]


def test_models_as_anthropic_lists_them_obs4(gateway: Served) -> None:
    body = gateway.ask("GET", "/v1/models?limit=1000", None, VERSION).json
    assert names_in(body) == ["forced", "m", "org/m-2:7b"]
    assert (body["has_more"], body["first_id"], body["last_id"]) == (False, "forced", "org/m-2:7b")
    for model in body["data"]:
        assert (model["type"], model["display_name"]) == ("model", model["id"])
        assert model["toolspeak"]["mode"] in ("force", "auto")
    assert body["data"][0]["max_input_tokens"] == 4096


@pytest.mark.parametrize(
    ("path", "headers"), [("/v1beta/models", {}), ("/v1/models", GOOGLE), ("/v1/models?key=x", {})]
)
def test_models_as_google_lists_them_wire1(gateway: Served, path: str, headers: dict[str, str]) -> None:
    body = gateway.ask("GET", path, None, headers).json
    assert names_in(body) == ["models/forced", "models/m", "models/org/m-2:7b"]
    for model in body["models"]:
        assert "generateContent" in model["supportedGenerationMethods"]
        is_known = model["name"] == "models/forced"
        assert ("inputTokenLimit" in model) is is_known, "an unknown limit is not invented"


def test_models_as_ollama_lists_them_wire1(gateway: Served) -> None:
    body = gateway.ask("GET", "/api/tags").json
    assert names_in(body) == ["forced", "m", "org/m-2:7b"]
    for model in body["models"]:
        assert model["model"] == model["name"]
        assert len(model["digest"]) == 64
        assert model["details"]["family"]
    assert gateway.ask("GET", "/api/ps").json == {"models": []}
    version = gateway.ask("GET", "/api/version").json["version"]
    assert tuple(map(int, version.split("."))) >= (0, 5, 13)


@pytest.mark.parametrize(
    ("path", "headers", "field"),
    [
        ("/v1/models/m", {}, "id"),
        ("/v1/models/org%2Fm-2:7b", {}, "id"),
        ("/v1/models/org/m-2:7b", {}, "id"),
        ("/v1/models/m", VERSION, "id"),
        ("/v1beta/models/m", {}, "name"),
    ],
)
def test_one_model_wire1(gateway: Served, path: str, headers: dict[str, str], field: str) -> None:
    shown = gateway.ask("GET", path, None, headers).json
    assert shown[field].removeprefix("models/") == path.replace("%2F", "/").partition("models/")[2]


@pytest.mark.parametrize("body", [{"model": "m"}, {"name": "m:latest"}])
def test_one_model_as_ollama_shows_it_wire1(gateway: Served, body: dict[str, str]) -> None:
    shown = gateway.post("/api/show", body).json
    assert shown["capabilities"] == ["completion", "tools"]
    architecture = shown["model_info"]["general.architecture"]
    assert f"{architecture}.context_length" not in shown["model_info"], "an unknown limit is not invented"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", {}, {"model": ""}, {"model": 5}])
def test_a_question_for_no_model_names_the_field(gateway: Served, body: object) -> None:
    reply = gateway.post("/api/show", body)
    assert reply.status == 400
    assert "model" in reply.json["error"]


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("wire", "path", "field"),
    [
        ("anthropic", "/v1/messages/count_tokens", "input_tokens"),
        ("anthropic", "/v1/v1/messages/count_tokens?beta=true", "input_tokens"),
        ("openai_responses", "/v1/responses/input_tokens", "input_tokens"),
        ("gemini", "/v1beta/models/m:countTokens", "totalTokens"),
        ("gemini", "/v1/models/m:countTokens", "totalTokens"),
    ],
)
def test_a_count_grows_with_the_text_and_asks_nobody_wire1(
    gateway: Served, upstream: ScriptedUpstream, wire: str, path: str, field: str
) -> None:
    upstream.answers(answering(Answer("It is cold.")))
    body = question(wire).body or {}
    few = gateway.post(path, body).json[field]
    longer = json.dumps(body).replace("How is the weather?", "How is the weather? " * 100).encode()
    many = gateway.post(path, longer).json[field]
    assert 5 < few < 200
    assert 400 < many - few < 700
    assert not upstream.asked


def test_google_wraps_what_it_counts(gateway: Served) -> None:
    body = question("gemini").body or {}
    plain = gateway.post("/v1beta/models/m:countTokens", body).json
    wrapped = {"generateContentRequest": {"model": "models/m", **body}}
    assert gateway.post("/v1beta/models/m:countTokens", wrapped).json == plain


@pytest.mark.parametrize(
    "path", ["/v1/messages/count_tokens", "/v1/responses/input_tokens", "/v1beta/models/m:countTokens"]
)
def test_what_cannot_be_counted_is_refused(gateway: Served, path: str) -> None:
    assert gateway.post(path, b"{").status == 400


# ---------------------------------------------------------------- the rest


def test_somebody_is_here_wire1(gateway: Served) -> None:
    home, probe = gateway.ask("GET", "/"), gateway.ask("HEAD", "/")
    assert (home.status, home.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert (probe.status, probe.body) == (200, b"")
    assert probe.headers["content-length"] == home.headers["content-length"]
    assert gateway.ask("GET", "/health").json == gateway.ask("GET", "/live").json == {"status": "ok"}
    assert gateway.ask("GET", "/api/hello").status == 200
    assert gateway.ask("HEAD", "/v1/models").body == b""


@pytest.mark.parametrize(
    ("wire", "method", "path", "headers"),
    [
        ("openai_chat", "GET", "/v1/nothing", {}),
        ("openai_chat", "GET", "/v1/chat/completions", {}),
        ("openai_chat", "DELETE", "/v1/models/m", {}),
        ("openai_chat", "POST", "/v1/fine_tuning/jobs", {}),
        ("openai_chat", "PUT", "/v1/responses", {}),
        ("anthropic", "POST", "/v1/messages/batches", VERSION),
        ("anthropic", "GET", "/v1/nothing", VERSION),
        ("gemini", "POST", "/v1beta/models/m:embedContent", {}),
        ("gemini", "GET", "/v1beta/nothing", {}),
        ("gemini", "POST", "/v1/models/m:noSuch", GOOGLE),
        ("ollama", "POST", "/api/pull", {}),
        ("ollama", "DELETE", "/api/delete", {}),
        ("ollama", "GET", "/api/chat", {}),
        ("ollama", "POST", "/api/create", {}),
    ],
)
def test_what_is_not_there_is_said_in_the_clients_protocol_wire1(
    gateway: Served, wire: str, method: str, path: str, headers: dict[str, str]
) -> None:
    reply = gateway.ask(method, path, None, headers)
    assert reply.status == 404
    assert error_faults(wire, 404, reply.json) == []


# ---------------------------------------------------------------- marks


def test_every_answer_has_a_trace_of_its_own_obs1(gateway: Served) -> None:
    asked = question("openai_chat")
    replies = [
        *(gateway.post(question(wire).path, question(wire).body) for wire in WIRES for _ in range(4)),
        *(gateway.post(question(wire, stream=True).path, question(wire, stream=True).body) for wire in WIRES),
        gateway.ask("GET", "/v1/models"),
        gateway.ask("GET", "/nothing"),
        gateway.post(asked.path, b"{"),
        gateway.ask("GET", "/health", None, {"host": "evil.com"}),
        gateway.ask("OPTIONS", "/v1/models", None, {"origin": "http://localhost"}),
    ]
    traces = [reply.headers["x-toolspeak-trace"] for reply in replies]
    assert len(set(traces)) == len(replies)
    assert all(len(trace) >= 16 and trace.isalnum() for trace in traces)


def test_a_trace_stands_in_the_answers_id_too_obs1(gateway: Served) -> None:
    for wire, name in (
        ("openai_chat", "id"),
        ("openai_responses", "id"),
        ("anthropic", "id"),
        ("gemini", "responseId"),
    ):
        reply = gateway.post(question(wire).path, question(wire).body)
        assert reply.headers["x-toolspeak-trace"] in reply.json[name]
    assert "request-id" in gateway.post("/v1/messages", question("anthropic").body).headers


def logged(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    """Return the lines with this word; they are written when the answer has left."""

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if word in record.getMessage()]

    assert soon(lambda: bool(lines()))
    return lines()


def test_the_trace_is_in_the_log_obs1(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolspeak")
    asked = question("openai_chat")
    good, bad = gateway.post(asked.path, asked.body), gateway.post(asked.path, b"{")
    (about_good,) = logged(caplog, good.headers["x-toolspeak-trace"][:8])
    (about_bad,) = logged(caplog, bad.headers["x-toolspeak-trace"][:8])
    assert about_good.startswith("200 /v1/chat/completions 127.0.0.1 m@up native ")
    assert about_bad.startswith("400 /v1/chat/completions 127.0.0.1 client: ")


def test_a_log_is_not_forged_by_what_a_client_writes_safe6(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolspeak")
    body = {**(question("openai_chat").body or {}), "model": "up:m\ntrace=0 all is well\x1b[31m" + "x" * 500}
    assert gateway.post("/v1/chat/completions", body).status == 200
    (line,) = logged(caplog, " m\\n")
    assert line.isascii()
    assert line.isprintable()
    assert len(line) <= 120

"""Nothing that a client says changes which upstream is asked, and with which key (SAFE-6)."""

import json
from collections.abc import Generator

import pytest

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import Asked, ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import UPSTREAM_KEY, Served, config_of, serving, towards

STOLEN = "sk-of-the-client-93c1"
WORDS = (
    "api_base",
    "api_key",
    "base_url",
    "custom_llm_provider",
    "endpoint",
    "upstream",
    "extra_headers",
    "azure_endpoint",
    "user_config",
)
SENT = {"host", "content-type", "content-length", "authorization", "accept", "accept-encoding"}


@pytest.fixture(scope="module")
def bait() -> Generator[ScriptedUpstream]:
    """Run a server that a client names."""
    with listening() as bait:
        bait.answers(answering(Answer("Thanks for the key.")))
        yield bait


@pytest.fixture(scope="module")
def upstreams() -> Generator[dict[str, ScriptedUpstream]]:
    with listening() as one:
        one.answers(answering(Answer("It is cold.")))
        yield dict.fromkeys(WIRES, one)


@pytest.fixture(scope="module", params=WIRES)
def over(request: pytest.FixtureRequest, upstreams: dict[str, ScriptedUpstream]) -> Generator[tuple[Served, str]]:
    """Run a gateway over each wire."""
    wire: str = request.param
    with serving(config_of(towards(upstreams[wire], wire))) as served:
        yield served, wire


def only(upstream: ScriptedUpstream) -> Asked:
    """Return the one request that came, which has our key and nobody's other."""
    (asked,) = upstream.asked
    assert asked.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert asked.headers.keys() <= SENT
    assert STOLEN not in f"{asked.path} {asked.headers} {asked.body!r}"
    return asked


@pytest.mark.parametrize("client", WIRES)
def test_words_in_a_body_lead_nowhere_safe6(
    over: tuple[Served, str], upstreams: dict[str, ScriptedUpstream], bait: ScriptedUpstream, client: str
) -> None:
    gateway, wire = over
    upstream = upstreams[wire]
    asked = question(client)
    for word in WORDS:
        upstream.answers(answering(Answer("It is cold.")))
        value: object = STOLEN if word == "api_key" else bait.url
        body = {**(asked.body or {}), word: {"authorization": value} if word.endswith(("headers", "config")) else value}
        assert gateway.post(asked.path, body).status == 200, word
        sent = only(upstream)
        assert word not in sent.json
        assert str(bait.port) not in sent.body.decode()
    assert not bait.asked
    assert not bait.listings


HEADERS = {
    "x-api-base": "URL",
    "api-base": "URL",
    "x-upstream": "URL",
    "x-litellm-api-base": "URL",
    "x-portkey-custom-host": "URL",
    "x-portkey-provider": "openai",
    "helicone-target-url": "URL",
    "x-forwarded-host": "HOST",
    "forwarded": "host=HOST",
    "x-original-url": "/api/chat",
    "x-rewrite-url": "/api/chat",
    "proxy-authorization": f"Bearer {STOLEN}",
    "authorization": f"Bearer {STOLEN}",
    "x-api-key": STOLEN,
    "cookie": f"key={STOLEN}",
    "openai-organization": STOLEN,
    "x-toolspeak-upstream": "URL",
    "x-toolspeak-url": "URL",
}


@pytest.mark.parametrize("client", WIRES)
def test_headers_and_queries_lead_nowhere_safe6(
    over: tuple[Served, str], upstreams: dict[str, ScriptedUpstream], bait: ScriptedUpstream, client: str
) -> None:
    gateway, wire = over
    upstream = upstreams[wire]
    upstream.answers(answering(Answer("It is cold.")))
    asked = question(client)
    host = f"127.0.0.1:{bait.port}"
    headers = {name: value.replace("URL", bait.url).replace("HOST", host) for name, value in HEADERS.items()}
    query = f"api_base={bait.url}&base_url={bait.url}&upstream={host}&api_key={STOLEN}&key={STOLEN}"
    assert gateway.post(f"{asked.path}?{query}", asked.body, headers).status == 200
    sent = only(upstream)
    assert sent.headers["host"] == f"127.0.0.1:{upstream.port}"
    assert str(bait.port) not in f"{sent.path} {sent.headers} {sent.body!r}"
    assert not bait.asked
    assert not bait.listings


PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "ollama": "/api/chat",
}


def test_a_models_name_leads_nowhere_else_safe6(
    over: tuple[Served, str], upstreams: dict[str, ScriptedUpstream], bait: ScriptedUpstream
) -> None:
    """Google's wire has the name in its path."""
    gateway, wire = over
    upstream = upstreams[wire]
    names = (
        bait.url,
        f"up:http://127.0.0.1:{bait.port}/",
        "up:../../../api/delete",
        "up:..%2f..%2fadmin",
        "up:m?key=x#",
        f"up:@127.0.0.1:{bait.port}/",
        f"up:\\\\127.0.0.1:{bait.port}",
        "up:m\r\nx-evil: 1",
        "up:m HTTP/1.1",
        "up:\u2028\x00",
    )
    for name in names:
        upstream.answers(answering(Answer("It is cold.")))
        body = {**(question("openai_chat").body or {}), "model": name}
        reply = gateway.post("/v1/chat/completions", body)
        assert reply.status in (200, 400), (name, reply)
        if reply.status == 200:
            path = only(upstream).path
            inside = path.startswith("/v1beta/models/") and path.count("/") == 3 and path.count("?") == 0
            assert inside if wire == "gemini" else path == PATHS[wire], (name, path)
    assert not bait.asked
    assert not bait.listings


def test_the_words_are_not_missed_by_anybody(over: tuple[Served, str], upstreams: dict[str, ScriptedUpstream]) -> None:
    """Other fields that we do not know still reach an upstream of the same protocol."""
    gateway, wire = over
    upstreams[wire].answers(answering(Answer("It is cold.")))
    asked = question(wire)
    assert gateway.post(asked.path, {**(asked.body or {}), "x_new_field": {"a": 1}}).status == 200
    name = "xNewField" if wire == "gemini" else "x_new_field"
    assert json.loads(upstreams[wire].asked[0].body)[name] == {"a": 1}

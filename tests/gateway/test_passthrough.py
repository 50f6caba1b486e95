"""What is not chat goes to the same upstream as it is: embeddings, completions, images, audio (PASS-1 to PASS-4)."""

import asyncio
import json
import time
from collections.abc import Generator, Mapping
from typing import Any

import pytest

from testkit.scripted_upstream import JSON, NDJSON, SSE, Asked, ScriptedUpstream, listening, refuse, say
from tests.gateway.scene import UPSTREAM_KEY, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Limits, Model
from toolspeak.gateway.passthrough import read_form, read_json

OPENAI = (
    "/v1/completions",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/moderations",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/images/variations",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
)
OLLAMA = ("/api/generate", "/api/embed", "/api/embeddings")
# Spaces, an escape and an unknown field: whoever decodes and encodes again changes some of it.
BODY = b'{ "model" : "m",\n "input":["caf\\u00e9", 1.0e2], "of_tomorrow": {"model": "x"} }'
VECTOR = b'{"data": [{"embedding": [0.10, 2e-3]}]}\n'
BOUNDARY = "X-b0undary"


def form(*fields: tuple[str, bytes], end: bytes = b"--\r\n") -> bytes:
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (BOUNDARY.encode(), name.encode(), value)
        for name, value in fields
    ]
    return b"".join((*parts, b"--", BOUNDARY.encode(), end))


FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
SOUND = bytes(range(256)) * 64


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m", "org/m-2:7b")) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    keys = (key("all", "one"), key("some", "two", models=("vectors",)), key("few", "three", requests_per_minute=1))
    alias = Model("vectors", "up", "org/m-2:7b")
    limits = Limits(body_bytes=200_000)
    with serving(config_of(towards(upstream), models=(alias,), keys=keys, limits=limits)) as served:
        yield served


def bearer(text: str = "all", **more: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {text}", **{name.replace("_", "-"): value for name, value in more.items()}}


def raw_request(path: str) -> bytes:
    """Return a request as it goes over the socket."""
    body = b'{"model":"m","stream":true}'
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer all\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def error_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"message": body["error"]} if isinstance(body["error"], str) else body["error"]


@pytest.mark.parametrize("path", [*OPENAI, *OLLAMA])
def test_bytes_go_in_and_come_out_as_they_are_pass1(gateway: Served, upstream: ScriptedUpstream, path: str) -> None:
    upstream.answers(say(VECTOR, JSON))
    reply = gateway.post(path, BODY, bearer())
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, VECTOR, JSON)
    assert reply.headers["x-toolspeak-trace"]
    (asked,) = upstream.asked
    assert (asked.method, asked.path, asked.body) == ("POST", path, BODY)


@pytest.mark.parametrize("path", ["/embeddings", "/v1/v1/embeddings", "/v1/embeddings/"])
def test_a_path_has_many_spellings_pass1(gateway: Served, upstream: ScriptedUpstream, path: str) -> None:
    upstream.answers(say(VECTOR, JSON))
    assert gateway.post(path, BODY, bearer()).status == 200
    assert upstream.asked[0].path == "/v1/embeddings"


def test_an_upstream_that_speaks_ollama_has_both_kinds_pass1(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream, "ollama"))) as served:
        for path in ("/v1/embeddings", "/api/embed"):
            upstream.answers(say(VECTOR, JSON))
            assert served.post(path, BODY).body == VECTOR
            assert upstream.asked[0].path == path


def test_a_form_with_a_file_is_forwarded_pass1(gateway: Served, upstream: ScriptedUpstream) -> None:
    body = form(("file", SOUND), ("model", b"m"), ("language", b"no"))
    upstream.answers(say(b'{"text": "hei"}', JSON))
    reply = gateway.post("/v1/audio/transcriptions", body, bearer(**FORM))
    assert reply.json == {"text": "hei"}
    assert upstream.asked[0].body == body
    assert upstream.asked[0].headers["content-type"] == FORM["content-type"]


def test_a_binary_response_is_forwarded_pass1(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(SOUND, "audio/mpeg", headers=[("content-disposition", "attachment; filename=a.mp3")]))
    reply = gateway.post("/v1/audio/speech", {"model": "m", "input": "hei"}, bearer(accept="audio/mpeg"))
    assert (reply.body, reply.headers["content-type"]) == (SOUND, "audio/mpeg")
    assert reply.headers["content-disposition"] == "attachment; filename=a.mp3"
    assert upstream.asked[0].headers["accept"] == "audio/mpeg"


@pytest.mark.parametrize(("path", "media_type"), [("/v1/completions", SSE), ("/api/generate", NDJSON)])
def test_a_stream_arrives_piece_by_piece_pass1(
    gateway: Served, upstream: ScriptedUpstream, path: str, media_type: str
) -> None:
    async def slowly(asked: Asked) -> None:
        asked.head(200, media_type)
        await asked.chunk(b"first\n")
        while not seen:  # noqa: ASYNC110 # the client is a thread, which cannot set an event of this loop
            await asyncio.sleep(0.01)
        await asked.chunk(b"second\n")
        await asked.end()

    seen: list[bytes] = []
    upstream.answers(slowly)
    connection = gateway.connect()
    body = b'{"model":"m","stream":true}'
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer all\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    got = b""
    while b"first\n" not in got:
        got += connection.recv(65536)
    assert b"second" not in got
    seen.append(got)
    while b"second\n" not in got:
        got += connection.recv(65536)
    assert media_type.encode() in got


@pytest.mark.parametrize("name", ["vectors", "up:org/m-2:7b"])
def test_a_name_of_ours_becomes_the_upstreams_and_nothing_else_changes_pass2(
    gateway: Served, upstream: ScriptedUpstream, name: str
) -> None:
    upstream.answers(say(VECTOR, JSON))
    gateway.post("/v1/embeddings", BODY.replace(b'"m"', json.dumps(name).encode()), bearer())
    assert upstream.asked[0].body == BODY.replace(b'"m"', b'"org/m-2:7b"')
    upstream.answers(say(VECTOR, JSON))
    gateway.post("/v1/audio/translations", form(("model", name.encode()), ("file", SOUND)), bearer(**FORM))
    assert upstream.asked[0].body == form(("model", b"org/m-2:7b"), ("file", SOUND))


def test_an_unknown_name_is_not_replaced_by_the_default_pass2(gateway: Served, upstream: ScriptedUpstream) -> None:
    """A chat model answers for another one; a vector of another model would be wrong in silence."""
    upstream.answers(refuse(404, {"error": {"message": "model 'nomic' not found, try pulling it first"}}))
    reply = gateway.post("/v1/embeddings", {"model": "nomic", "input": "x"}, bearer())
    assert upstream.asked[0].json["model"] == "nomic"
    assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")
    assert "model 'nomic' not found" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, {"detail": "Not Found"}), (404, {"error": {"message": "File Not Found"}}), (405, b"no")],
)
@pytest.mark.parametrize("path", ["/v1/embeddings", "/api/embed"])
def test_an_upstream_without_the_endpoint_is_named_pass2(
    gateway: Served, upstream: ScriptedUpstream, path: str, status: int, said: object
) -> None:
    upstream.answers(refuse(status, said))
    reply = gateway.post(path, BODY, bearer())
    assert reply.status == 404
    message = error_of(reply.json)["message"]
    assert (
        message
        == f"the upstream 'up' has no endpoint {path} (it answers {status}): use a model of an upstream that has it"
    )
    assert error_of(reply.json).get("code") in (None, "unknown_url")


def test_a_path_that_is_not_there_is_not_a_model_that_is_not_there_pass2(gateway: Served) -> None:
    reply = gateway.post("/v1/fine_tuning/jobs", {"model": "m"}, bearer())
    assert (reply.status, reply.json["error"]["code"]) == (404, "unknown_url")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/audio/speech", "/api/generate"])
def test_keys_permissions_and_rates_are_those_of_turns_pass3(
    gateway: Served, upstream: ScriptedUpstream, path: str
) -> None:
    upstream.answers(say(VECTOR, JSON))
    assert gateway.post(path, BODY).status == 401
    assert gateway.post(path, BODY, bearer("some")).status == 403
    assert gateway.post(path, {"model": "up:vectors"}, bearer("some")).status == 403
    assert upstream.asked == []
    assert gateway.post(path, {"model": "vectors"}, bearer("some")).status == 200


def test_a_rate_is_spent_by_embeddings_pass3(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(VECTOR, JSON))
    assert gateway.post("/v1/embeddings", BODY, bearer("few")).status == 200
    reply = gateway.post("/v1/embeddings", BODY, bearer("few"))
    assert (reply.status, len(upstream.asked)) == (429, 1)
    assert reply.headers["retry-after"]


def test_a_large_body_is_refused_before_the_upstream_hears_of_it_pass3(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    upstream.answers(say(VECTOR, JSON))
    reply = gateway.post("/v1/audio/transcriptions", form(("file", bytes(300_000)), ("model", b"m")), bearer(**FORM))
    assert (reply.status, upstream.asked) == (413, [])


def test_the_clients_key_and_query_stay_here_pass4(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(VECTOR, JSON))
    sent = bearer(cookie="a=b", x_api_key="all", connection="x-secret", x_secret="1", x_forwarded_for="10.0.0.1")
    assert gateway.post("/v1/embeddings?key=all&api-version=2", BODY, sent).status == 200
    (asked,) = upstream.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert set(asked.headers) <= {
        "host",
        "authorization",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
    }


def test_an_error_of_the_upstream_tells_no_secret_pass4(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(refuse(400, {"error": {"message": f"bad input for {UPSTREAM_KEY}"}}))
    reply = gateway.post("/v1/embeddings", BODY, bearer())
    assert reply.status == 400
    assert "bad input for" in reply.json["error"]["message"]
    assert UPSTREAM_KEY.encode() not in reply.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "vectors", "model": "m"}',
        b'{"model": "vectors", "\\u006dodel": "m"}',
        b'{"model": "vectors", "Model": "m"}',
        b'{"model": "vectors", "api_base": "http://there"}',
        b'{"model": ["vectors"]}',
        b'{"input": "x"}',
        b'["vectors"]',
        b"",
    ],
)
def test_a_body_that_servers_read_in_two_ways_is_refused_pass4(
    gateway: Served, upstream: ScriptedUpstream, body: bytes
) -> None:
    upstream.answers(say(VECTOR, JSON))
    assert gateway.post("/api/embed", body, bearer("some")).status == 400
    assert upstream.asked == []


@pytest.mark.parametrize(
    "body",
    [
        form(("model", b"vectors"), ("model", b"m")),
        form(("model", b"vectors"), ("MODEL", b"m")),
        form(("model", b"vectors"), ("base_url", b"http://there")),
        form(("file", SOUND)),
        form(("model", b"vectors"), end=b""),
        form(("model", b"vectors")).replace(b'name="model"', b'name="model"; name="other"'),
        form(("model", b"vectors")).replace(b'name="model"', b"name*=utf-8''model; name=\"x\""),
        b"",
    ],
)
def test_a_form_that_servers_read_in_two_ways_is_refused_pass4(
    gateway: Served, upstream: ScriptedUpstream, body: bytes
) -> None:
    upstream.answers(say(VECTOR, JSON))
    assert gateway.post("/v1/images/edits", body, bearer("some", **FORM)).status == 400
    assert upstream.asked == []


def test_an_upstream_that_breaks_off_breaks_the_response_off_pass1(gateway: Served, upstream: ScriptedUpstream) -> None:
    """Half an image must not look like a whole one."""

    async def half(asked: Asked) -> None:
        asked.head(200, "image/png")
        await asked.chunk(SOUND)
        asked.reset()

    upstream.answers(half)
    got = gateway.raw(raw_request("/v1/images/generations"))
    assert got.startswith(b"HTTP/1.1 200")
    assert not got.endswith(b"0\r\n\r\n")


def test_a_client_that_leaves_ends_the_work_of_the_upstream_pass1(gateway: Served, upstream: ScriptedUpstream) -> None:
    async def endless(asked: Asked) -> None:
        asked.head(200, NDJSON)
        while True:
            await asked.chunk(b"{}\n" * 1000)

    upstream.answers(endless)
    connection = gateway.connect()
    connection.sendall(raw_request("/api/generate"))
    assert connection.recv(1000)
    connection.close()
    assert upstream.wait_for(1)[0].hung_up.wait(10)
    assert soon(lambda: gateway.inside == 0, 10)


def test_a_client_that_reads_slowly_holds_the_upstream_back_pass1(gateway: Served, upstream: ScriptedUpstream) -> None:
    """Buffers between the two are bounded: the upstream cannot send 64 MB to a client that reads nothing."""
    sent = 0

    async def much(asked: Asked) -> None:
        nonlocal sent
        asked.head(200, "application/octet-stream")
        for _ in range(1024):
            await asked.chunk(bytes(65536))
            sent += 65536
        await asked.end()

    upstream.answers(much)
    connection = gateway.connect()
    connection.sendall(raw_request("/v1/audio/speech"))
    upstream.wait_for(1)
    last = -1
    while sent != last:
        last = sent
        time.sleep(0.3)
    assert 0 < sent < 40_000_000
    connection.close()


def test_the_name_is_found_at_the_top_only() -> None:
    assert read_json(BODY).renamed("other") == BODY.replace(b'"m"', b'"other"')
    deep = b'{"a": [{"model": "x"}, "model", {"b": {"model": "y"}}], "model": "z \\" ,", "c": "model"}'
    assert read_json(deep).model == 'z " ,'
    assert read_json(deep).renamed("n") == deep.replace(b'"z \\" ,"', b'"n"')
    assert read_form(form(("file", b'name="model"\r\n\r\nx'), ("model", b"m")), FORM["content-type"]).model == "m"

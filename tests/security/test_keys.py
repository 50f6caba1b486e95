"""Keys are put everywhere, and then looked for in everything that leaves: logs, errors, headers, lists (SAFE-6)."""

import asyncio
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
from typing_extensions import override

from testkit.protocols import WIRES, Endpoint, answering, question, sides
from testkit.scripted_upstream import SSE, STREAM_TYPE, Asked, Script, ScriptedUpstream, listening, refuse, say
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Reply, Served, config_of, finished, head, key, serving, towards
from toolspeak.config.shape import Config
from toolspeak.gateway.exchange import Refused

CLIENT, WRONG, UPSTREAM, HEADER, BODY = (f"sk-canary-{name}-6d0c" for name in ("client", "wrong", "up", "head", "body"))
CANARY = "sk-canary"
CARRIERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "?key=")


class Noted(logging.Handler):
    """Keeps every line that anybody logs, with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {self.format(record)} {record.args!r}")


@contextmanager
def noting() -> Generator[Noted]:
    """Log everything, whoever it is."""
    noted = Noted()
    names = ("", "toolspeak", "uvicorn", "uvicorn.error", "uvicorn.asgi", "aiohttp", "aiohttp.client", "asyncio")
    before = {name: logging.getLogger(name).level for name in names}
    logging.getLogger().addHandler(noted)
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield noted
    finally:
        logging.getLogger().removeHandler(noted)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def configured(upstream: ScriptedUpstream, wire: str) -> Config:
    headers = (("x-sec", HEADER),)
    return config_of(towards(upstream, wire, key=UPSTREAM, headers=headers, retries=0), keys=(key(CLIENT),))


def showing(endpoint: Endpoint, carrier: str, shown: str) -> tuple[str, dict[str, str]]:
    if carrier == "?key=":
        return f"{endpoint.path}{'&' if '?' in endpoint.path else '?'}key={shown}", {**endpoint.headers}
    return endpoint.path, {**endpoint.headers, carrier: f"Bearer {shown}" if carrier == "authorization" else shown}


def everything(gateway: Served, wire: str) -> Iterator[Reply]:
    """Ask for all there is, with keys wherever one can stand."""
    for endpoint in (question(wire), question(wire, stream=True), *sides(wire)):
        body = endpoint.body and {**endpoint.body, "api_key": BODY, "credentials": {"key": BODY}}
        for carrier in CARRIERS:
            for shown in (CLIENT, WRONG):
                path, headers = showing(endpoint, carrier, shown)
                yield gateway.ask(endpoint.method, path, body, {**headers, "cookie": f"k={BODY}", "x-extra": BODY})
    broken = {"authorization": f"Bearer {CLIENT}", "x-api-key": WRONG}
    yield gateway.ask("GET", f"/nothing?key={CLIENT}", None, broken)
    yield gateway.ask("POST", question(wire).path, b"{no json", broken)
    yield gateway.ask("POST", question(wire).path, question(wire).body, {**broken, "x-toolspeak-mode": "no-such"})
    yield gateway.ask("POST", question(wire).path, question(wire).body, {**broken, "host": "evil.com"})
    yield Reply(0, {}, gateway.raw(head("http://evil.com/", "GET", authorization=f"Bearer {CLIENT}")))


QUOTED = f"Incorrect API key provided: {UPSTREAM}, header {HEADER}. You sent Bearer {UPSTREAM}"


async def broken_off(asked: Asked) -> None:
    """Begin, and end with an error that quotes the key."""
    wire = asked.wire
    asked.head(200, STREAM_TYPE.get(wire, SSE))
    await asked.chunk(STREAMS[wire](Answer("It is", error=QUOTED)).encode())
    await asked.end()


UPSTREAMS: dict[str, Script] = {
    "answers": answering(Answer("It is cold.")),
    "quotes the key in a 401": refuse(401, {"error": {"message": QUOTED, "type": "auth", "code": UPSTREAM}}),
    "quotes the key as text": refuse(403, QUOTED.encode()),
    "quotes the key in a page": say(f"<html>{QUOTED}</html>".encode(), "text/html", 500),
    "quotes the key in an answer that cannot be read": say(f"data: {QUOTED}\n\n".encode()),
    "leads elsewhere": refuse(302, b"", [("location", f"http://127.0.0.1:1/?key={UPSTREAM}")]),
    "quotes the key in headers": refuse(429, {"error": QUOTED}, [("x-key", UPSTREAM), ("retry-after", "9")]),
    "breaks off": broken_off,
}


@pytest.fixture(scope="module", params=WIRES)
def served(request: pytest.FixtureRequest) -> Generator[tuple[Served, ScriptedUpstream, str]]:
    """Run a gateway over an upstream of each wire, with keys on both sides."""
    wire: str = request.param
    with listening() as upstream, serving(configured(upstream, wire)) as gateway:
        yield gateway, upstream, wire


@pytest.mark.parametrize("script", UPSTREAMS.values(), ids=UPSTREAMS.keys())
def test_no_key_leaves_in_answers_or_logs_safe6(script: Script, served: tuple[Served, ScriptedUpstream, str]) -> None:
    gateway, upstream, wire = served
    upstream.answers(script)
    with noting() as noted:
        replies = list(everything(gateway, wire))
    assert upstream.asked[0].headers["authorization"] == f"Bearer {UPSTREAM}"
    assert upstream.asked[0].headers["x-sec"] == HEADER
    assert len({reply.status for reply in replies}) > 3
    assert len(noted.lines) > len(replies) / 2
    assert [reply for reply in replies if CANARY in f"{reply.headers} {reply.body!r}"] == []
    assert [line for line in noted.lines if CANARY in line] == []


def test_the_search_finds_a_key_that_is_there() -> None:
    with noting() as noted:
        logging.getLogger("aiohttp.client").debug("asked %s", {"key": CLIENT})
    assert [line for line in noted.lines if CANARY in line]


def test_a_fault_of_ours_tells_the_trace_and_nothing_else_safe6(
    served: tuple[Served, ScriptedUpstream, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, _, wire = served

    async def broken(*_: object) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("a fault")

    with noting() as noted:
        monkeypatch.setattr(gateway.app.gateway.directory, "find", broken)
        path, headers = showing(question(wire), "?key=", CLIENT)
        reply = gateway.post(path, question(wire).body, headers)
        assert reply.status == 500
        assert reply.headers["x-should-retry"] == "false"
        assert reply.headers["x-toolspeak-trace"] in reply.body.decode()
        assert "a fault" not in reply.body.decode().replace("has a fault", "")
    assert [line for line in noted.lines if "RuntimeError" in line]
    assert [line for line in noted.lines if CANARY in line] == []


def test_no_repr_shows_a_key_safe6() -> None:
    """Tracebacks with local variables, and careless logging, write reprs."""
    with listening() as upstream, serving(configured(upstream, "openai_chat")) as gateway:
        inner = gateway.app.gateway
        shown = [repr(each) for each in (inner, inner.config, *inner.config.upstreams, *inner.config.keys)]
        (place,) = inner.directory._places.values()
        http = place._place.upstream
        shown += [repr(each) for each in (inner.keyring, inner.directory, place._place, http, http._client._address)]
    assert [text for text in shown if CANARY in text] == []
    assert "config=Config(" in shown[0]


def test_an_exception_of_the_transport_shows_no_key_safe6() -> None:
    with listening() as upstream:
        refused = towards(upstream, key=UPSTREAM, url="http://127.0.0.1:1/v1", retries=0)
        with noting() as noted, serving(config_of(refused)) as gateway:
            reply = gateway.post(*posted())
    assert reply.status == 502
    assert CANARY not in reply.body.decode()
    assert [line for line in noted.lines if CANARY in line] == []


def posted() -> tuple[str, object]:
    return question("openai_chat").path, question("openai_chat").body


def test_a_gateway_that_runs_by_itself_writes_no_key_safe6() -> None:
    with listening() as upstream:
        upstream.answers(refuse(401, {"error": {"message": QUOTED}}))
        environ = {**os.environ, "PYTHONASYNCIODEBUG": "1", "TOOLSPEAK_KEY": CLIENT, "TOOLSPEAK_UPSTREAM_KEY": UPSTREAM}
        command = [sys.executable, "-m", "toolspeak", "serve", "--upstream", upstream.url, "--port", "0"]
        process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            said = [process.stderr.readline()]
            port = int(said[0].rpartition(":")[2])
            served = Served(port, None, None)  # pyright: ignore[reportArgumentType] # it is only asked
            path, headers = showing(question("gemini"), "?key=", CLIENT)
            assert served.post(path, question("gemini").body, headers).status == 401
            assert upstream.asked[0].headers["authorization"] == f"Bearer {UPSTREAM}"
        finally:
            process.terminate()
            rest = process.communicate(timeout=20)
    lines = "".join([*said, *rest])
    assert "upstream: auth (401)" in lines
    assert CANARY not in lines


def test_a_traceback_of_a_refusal_shows_no_key_safe6() -> None:
    """Sentry and its like write down what an exception says."""
    with listening() as upstream, serving(configured(upstream, "openai_chat")) as gateway:
        keyring = gateway.app.gateway.keyring
        with pytest.raises(Refused) as refused:
            finished(keyring.identify(Shown()))  # pyright: ignore[reportArgumentType] # the rest is not looked at
        assert CANARY not in "".join(traceback.format_exception(refused.value))


class Shown:
    """As much of an exchange as the keyring looks at."""

    query = f"key={WRONG}"
    client = "203.0.113.1"

    def headers(self, name: bytes) -> list[str]:
        return [f"Bearer {WRONG}"] if name == b"authorization" else []

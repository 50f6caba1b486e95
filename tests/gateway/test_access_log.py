"""One line for each request, which a person can read and a program can parse (OBS-1, OBS-6)."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.protocols import WIRES, answering, question, sides
from testkit.scripted_upstream import Asked, ScriptedUpstream, hang, listening, refuse
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, head, key, serving, soon, towards
from toolspeak.config.shape import LogForm, Upstream
from toolspeak.engine.settings import Mode, Settings
from toolspeak.gateway import slow_turns
from toolspeak.gateway.access_log import AccessEntry, Fault, formatter
from toolspeak.ir.failure import Failure, FailureKind

COLD = Answer("It is cold.")
CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
SECRET = "sk-client-canary-11d2"


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        yield scripted


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    keys = (key(SECRET, "anna"), key("slow", "ben", requests_per_minute=1))
    with serving(config_of(towards(upstream), keys=keys)) as served:
        yield served


@pytest.fixture(autouse=True)
def _answers(upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture) -> None:
    upstream.answers(answering(COLD))
    caplog.set_level("INFO", "toolspeak")


def entries(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if isinstance(record.msg, AccessEntry)]


def only(caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    """Return the only line; it is written when the answer has left."""
    assert soon(lambda: bool(entries(caplog)), 5)
    (record,) = entries(caplog)
    return record


def fields(record: logging.LogRecord) -> dict[str, Any]:
    line = formatter(LogForm.JSON).format(record)
    assert "\n" not in line
    return json.loads(line)


def ask(gateway: Served, wire: str = "openai_chat", *, stream: bool = False, sent: str = SECRET, **more: str) -> int:
    asked = question(wire, stream=stream, **more)
    return gateway.post(asked.path, asked.body, {"x-api-key": sent}).status


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_line_tells_who_asked_for_what_and_how_it_went_obs6(
    gateway: Served, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    assert ask(gateway, stream=stream) == 200
    record = only(caplog)
    assert re.fullmatch(
        r"200 /v1/chat/completions anna@127\.0\.0\.1 m@up native 11\+7 tok (\d+\.\d\d/)?\d+\.\d\d s [0-9a-f]{8}",
        record.getMessage(),
    )
    found = fields(record)
    expected = {
        "event": "request",
        "level": "info",
        "tenant": "anna",
        "client": "127.0.0.1",
        "method": "POST",
        "path": "/v1/chat/completions",
        "wire": "openai_chat",
        "model": "m",
        "upstream": "up",
        "upstream_model": "m",
        "status": 200,
        "ok": True,
        "tools": "native",
        "requests": 1,
        "calls": 0,
        "complaints": 0,
        "input_tokens": 11,
        "output_tokens": 7,
    }
    assert {name: found[name] for name in expected} == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["time"])
    assert found["plan"].startswith("native ")
    assert (found["first_byte_seconds"] is not None) is stream
    assert SECRET not in formatter(LogForm.JSON).format(record)


def test_an_emulated_call_is_counted_obs6(upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture) -> None:
    upstream.answers(answering(CALL))
    forced = config_of(towards(upstream), settings=Settings(mode=Mode.FORCE, dialect="fenced"))
    with serving(forced) as gateway:
        ask(gateway)
        record = only(caplog)
    assert " emulated 1 call " in record.getMessage()
    assert (fields(record)["tools"], fields(record)["calls"]) == ("emulated", 1)


async def break_off(asked: Asked) -> None:
    """Begin an answer, then close the connection."""
    asked.head()
    await asked.chunk(STREAMS["openai_chat"](Answer("It is cold. " * 40)).encode()[:1500])
    await asyncio.sleep(0.05)
    asked.reset()


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_broke_off_is_an_error_of_the_upstream_obs6(
    gateway: Served, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, wire: str
) -> None:
    """It was logged as a success, with no tokens and no complaints."""
    upstream.answers(break_off)
    assert ask(gateway, wire, stream=True) == 200
    record = only(caplog)
    assert record.levelname == "ERROR"
    assert " m@up upstream: the upstream" in record.getMessage()
    assert (fields(record)["ok"], fields(record)["fault"]) == (False, "upstream")


def test_an_upstream_that_is_not_there_is_named_obs6(caplog: pytest.LogCaptureFixture) -> None:
    with serving(config_of(Upstream("box", "http://127.0.0.1:9/v1", retries=0))) as gateway:
        asked = question("openai_chat")
        assert gateway.post(asked.path, asked.body).status == 502
        record = only(caplog)
    assert record.levelname == "ERROR"
    assert " 127.0.0.1 m@box upstream: no connection" in record.getMessage()
    assert fields(record)["reason"] == "no connection to the upstream at 127.0.0.1:9: Connection refused"


def test_our_429_and_the_upstreams_are_told_apart_obs6(
    gateway: Served, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    assert [ask(gateway, sent="slow") for _ in range(2)] == [200, 429]
    upstream.answers(refuse(429, {"error": {"message": f"slow down, {SECRET}"}}, (("retry-after", "60"),)))
    assert ask(gateway) == 429
    assert soon(lambda: len(entries(caplog)) == 3)
    ours, theirs = entries(caplog)[1:]
    assert [ours.levelname, theirs.levelname] == ["WARNING", "WARNING"]
    assert " ben@127.0.0.1 our limit: " in ours.getMessage()
    assert fields(ours)["reason"] == "this key may send 1 requests a minute (keys.requests_per_minute)"
    assert (fields(theirs)["fault"], fields(theirs)["reason"]) == ("upstream", "rate_limited (429)")
    assert SECRET not in json.dumps(fields(theirs)), "an upstream may quote a key or a prompt"


def test_a_path_that_does_not_exist_is_named_obs6(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    assert gateway.ask("GET", "/v1/nothing", None, {"x-api-key": SECRET}).status == 404
    record = only(caplog)
    assert record.getMessage().startswith("404 /v1/nothing anna@127.0.0.1 client: there is nothing at GET ")
    assert record.levelname == "WARNING"


def test_a_client_without_a_key_is_no_tenant_obs6(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(gateway, sent="wrong-key-1234") == 401
    record = only(caplog)
    assert "wrong-key" not in formatter(LogForm.JSON).format(record)
    assert (fields(record)["tenant"], fields(record)["fault"]) == ("", "client")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_gives_up_waiting_is_a_warning_obs6(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """An agent whose patience ends after minutes tells its user nothing: the log is all that is left."""
    monkeypatch.setattr(slow_turns, "STEPS", (0.2, 2.0, 60.0))
    monkeypatch.setattr(slow_turns, "_FLOWING", 0.05)
    upstream.answers(hang)
    with serving(config_of(towards(upstream))) as gateway:
        asked = question("openai_chat", stream=stream)
        body = json.dumps(asked.body).encode()
        connection = gateway.connect()
        connection.sendall(head(asked.path, content_length=len(body)) + body)
        assert soon(lambda: sum(each.name == slow_turns.__name__ for each in caplog.records) == 2, 20)
        connection.close()
        record = only(caplog)
    assert (record.levelname, fields(record)["status"], fields(record)["fault"]) == ("WARNING", 499, "client hung up")
    lines = [each.getMessage() for each in caplog.records if each.name == slow_turns.__name__]
    assert len(lines) == 2, "one for each step"
    assert all(": up has not answered yet; it " in line for line in lines)
    assert all("(about " in line for line in lines)


def test_a_slow_turn_tells_how_much_is_written_obs7(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is held until it is whole: the client waits, and the log tells that the model writes."""
    monkeypatch.setattr(slow_turns, "STEPS", (0.3, 60.0))
    monkeypatch.setattr(slow_turns, "_FLOWING", 0.05)

    async def write(asked: Asked) -> None:
        asked.head()
        for event in STREAMS["openai_chat"](CALL).encode().split(b"\n\n")[:-1]:
            await asked.chunk(event + b"\n\n")
            await asyncio.sleep(0.1)
        await asked.end()

    upstream.answers(write)
    forced = config_of(towards(upstream), settings=Settings(mode=Mode.FORCE, dialect="fenced"))
    with serving(forced) as gateway:
        assert ask(gateway, stream=True) == 200
        only(caplog)
    (line,) = [each.getMessage() for each in caplog.records if each.name == slow_turns.__name__]
    assert re.search(r"after 0 s: up has written about \d+ tokens so far", line)


def test_a_stream_that_flows_is_not_called_slow_obs7(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_turns, "STEPS", (0.2, 60.0))

    async def write(asked: Asked) -> None:
        asked.head()
        for event in STREAMS["openai_chat"](Answer("It is cold. " * 6)).encode().split(b"\n\n")[:-1]:
            await asked.chunk(event + b"\n\n")
            await asyncio.sleep(0.05)
        await asked.end()

    upstream.answers(write)
    with serving(config_of(towards(upstream))) as gateway:
        assert ask(gateway, stream=True) == 200
        only(caplog)
    assert [each.getMessage() for each in caplog.records if each.name == slow_turns.__name__] == []


def test_health_checks_fill_no_log_obs6(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    assert gateway.ask("GET", "/health").status == 200
    assert ask(gateway) == 200
    assert " /v1/chat/completions " in only(caplog).getMessage()


def test_lists_of_models_do_not_use_up_the_rate_safe7(upstream: ScriptedUpstream) -> None:
    keys = (key("k", "t", requests_per_minute=2),)
    with serving(config_of(towards(upstream), keys=keys)) as gateway:
        lists = [side for wire in WIRES for side in sides(wire) if side.method == "GET"]
        for side in lists:
            assert gateway.ask("GET", side.path, None, {"x-api-key": "k"}).status == 200
        assert [ask(gateway, sent="k") for _ in range(3)] == [200, 200, 429]
        assert gateway.ask("GET", "/v1/models", None, {"x-api-key": "k"}).status == 200


def test_lists_of_models_count_among_the_requests_of_the_moment_safe7(upstream: ScriptedUpstream) -> None:
    """Without a rate they could be used to flood the gateway: its other limits hold for them."""
    upstream.answers(hang)
    keys = (key("k", "t", concurrent=1),)
    with serving(config_of(towards(upstream), keys=keys)) as gateway:
        asked = question("openai_chat")
        body = json.dumps(asked.body).encode()
        connection = gateway.connect()
        head = f"POST {asked.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        upstream.wait_for(1)
        assert gateway.ask("GET", "/v1/models", None, {"x-api-key": "k"}).status == 429


# ---------------------------------------------------------------- the line itself

WORDS = st.text(max_size=300)


@given(path=WORDS, model=WORDS, upstream=WORDS, message=WORDS, fault=st.sampled_from([None, *Fault]))
def test_no_word_forges_a_line_or_makes_it_too_long_safe6(
    path: str, model: str, upstream: str, message: str, fault: Fault | None
) -> None:
    entry = AccessEntry("7f3a21bc" * 3, "POST", path, "2001:db8::1", "openai_chat", 0.0, tenant="anna")
    entry.model, entry.upstream, entry.upstream_model, entry.status, entry.seconds = model, upstream, model, 200, 123.0
    if fault is not None:
        entry.fail(fault, Failure(FailureKind.OTHER, message, 502))
    record = logging.LogRecord("toolspeak", entry.level, "", 0, entry, None, None)
    line = formatter(LogForm.TEXT).format(record)
    assert line.isascii()
    assert line.isprintable()
    assert len(line) <= 120
    assert line.endswith(" 7f3a21bc")
    written = formatter(LogForm.JSON).format(record)
    assert written.isascii()
    assert written.isprintable()
    assert all(str(value).isprintable() for value in json.loads(written).values())


def test_a_traceback_stays_on_its_line_of_json() -> None:
    fault = (ValueError, ValueError("two\nlines"), None)
    record = logging.LogRecord("toolspeak", logging.ERROR, "", 0, "a fault", None, fault)
    line = formatter(LogForm.JSON).format(record)
    assert "\n" not in line
    assert "ValueError: two\nlines" in json.loads(line)["exception"]
    assert "ValueError: two" in formatter(LogForm.TEXT).format(record)


def test_a_line_is_written_when_the_answer_has_left(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    assert ask(gateway) == 200
    assert fields(only(caplog))["seconds"] <= time.monotonic() - began

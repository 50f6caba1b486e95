"""`toolspeak conformance` against our own gateway, against gateways that are bad on purpose, and live (CONF-1 to 3)."""

import json
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from testkit.field import Verdict, field_cases
from tests.gateway.scene import config_of, serving
from toolspeak.cli.conformance import conformance
from toolspeak.config.shape import Config, Upstream
from toolspeak.conformance.cases import ConformanceCase, conformance_cases
from toolspeak.conformance.upstream import ScriptedModel, serve_scripted
from toolspeak.engine.settings import Mode, Settings
from toolspeak.upstreams import Auth

SOME = ("--only", "kimi", "--only", "deepseek-dsml", "--only", "noncall")
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


def run(url: str, *options: str) -> Result:
    return CliRunner().invoke(conformance, [url, *options], catch_exceptions=False)


def judged(url: str, *options: str, status: int = 1) -> dict[str, Any]:
    result = run(url, "--json", *options)
    assert result.exit_code == status, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def gateway(port: int, settings: Settings) -> Config:
    """Describe a gateway whose upstream will be the scripted one."""
    url = f"http://127.0.0.1:{port}/v1"
    return config_of(Upstream("up", url, "openai_chat", Auth.NONE, settings=settings))


def through(settings: Settings, *options: str, status: int = 1) -> dict[str, Any]:
    """Judge our own gateway, which runs before its upstream does."""
    port = free_port()
    with serving(gateway(port, settings)) as served:
        return judged(f"http://127.0.0.1:{served.port}/v1", "--upstream-port", str(port), *options, status=status)


@pytest.mark.timeout(300)
def test_our_gateway_gets_right_what_our_readers_get_right_conf1() -> None:
    """The figures of `just field`, now over HTTP: streamed and whole, with the model's own name."""
    found = through(Settings(), "--by-model")
    assert found["sent"] == sum(len(case.ways) for case in conformance_cases())
    assert (found["wrong"], found["false"], found["protocol_errors"]) == (0, 0, 0)
    assert found["all_right"] >= 0.95 * found["sent"]
    cases = field_cases()
    read = {case.id: case.verdict(case.read(case.dialect_of("gateway"), (case.text,))) for case in cases}
    not_right = {row["id"]: row["verdict"] for row in found["not_right"] if row["id"] in read}
    assert not_right == {id: verdict.value for id, verdict in read.items() if verdict is not Verdict.RIGHT}
    assert len(cases) - len(not_right) >= 131


@pytest.mark.timeout(180)
def test_an_emulating_gateway_is_judged_alike_conf1() -> None:
    found = through(Settings(mode=Mode.FORCE), *SOME, "--only", "native deltas", status=0)
    assert found["sent"] > 90
    assert found["all_right"] == found["sent"]


@pytest.mark.timeout(180)
def test_a_gateway_that_passes_text_through_gets_no_call_right_conf1() -> None:
    found = through(Settings(mode=Mode.OFF), *SOME)
    # The text of one case of Kimi may also be left as it is.
    assert found["kinds"]["kimi"] | {"sent": 10, "right": 2, "missed": 8} == found["kinds"]["kimi"]
    # Texts that only look like calls are right as they are.
    assert found["kinds"]["noncall"]["right"] > 30
    assert (found["wrong"], found["false"]) == (0, 0)


class Breaking:
    """A gateway that passes everything through, and spoils the bytes of the response."""

    def __init__(self, model: ScriptedModel, old: bytes, new: bytes) -> None:
        self.model, self.old, self.new = model, old, new

    async def __call__(self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        async def spoiled(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": message["body"].replace(self.old, self.new)}
            await send(message)

        await self.model(scope, receive, spoiled)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"data: [DONE]\n\n", b"", "the stream ends without [DONE]"),
        (b'"role":"assistant",', b"", "role"),
        (b'"finish_reason":"stop"', b'"finish_reason":"end"', "finish_reason is 'end'"),
        (b'"object":"chat.completion', b'"object":"completion', "object is"),
    ],
)
def test_a_gateway_that_breaks_the_grammar_is_found_conf1(old: bytes, new: bytes, problem: str) -> None:
    """Here the gateway is the scripted upstream of another port, so that every text that is no call would be right."""
    cases: tuple[ConformanceCase, ...] = conformance_cases()
    with serve_scripted(ScriptedModel(cases), "127.0.0.1", 0) as intact:
        found = judged(intact, "--live", "--model", "m", status=0)
        assert (found["sent"], found["all_right"]) == (10, 10)
    with serve_scripted(Breaking(ScriptedModel(cases), old, new), "127.0.0.1", 0) as broken:
        found = judged(broken, "--live", "--model", "m")
    assert found["protocol_errors"] >= 5
    assert all(any(problem in each for each in row["problems"]) for row in found["not_right"])


def test_live_asks_the_first_model_and_shows_a_table_conf2(tmp_path: Path) -> None:
    badge = tmp_path / "badge.svg"
    with serve_scripted(ScriptedModel(()), "127.0.0.1", 0) as url:
        result = run(url.removesuffix("/v1"), "--live", "--badge", str(badge))
    assert result.exit_code == 0
    first, *rows = result.stdout.splitlines()
    assert " ".join(first.split()) == "kind sent right asked again text wrong missed wrong false protocol"
    assert [row.split("  ")[0] for row in rows[:6]] == [
        *("text", "one call", "two calls", "required call", "after a result", "total")
    ]
    assert rows[-1] == f"{url} (conformance): 10 of 10 responses right in content and form"
    assert "10 of 10 right" in badge.read_text()
    assert "10 of 10 responses judged" in result.stderr


@pytest.mark.timeout(180)
def test_the_worst_are_named_with_what_was_expected_and_what_came_conf3() -> None:
    port = free_port()
    with serving(gateway(port, Settings(mode=Mode.OFF))) as served:
        url = f"http://127.0.0.1:{served.port}/v1"
        result = run(url, "--upstream-port", str(port), "--only", "kimi", "--worst", "1")
    assert result.exit_code == 1
    assert f"The scripted model 'conformance' is at http://127.0.0.1:{port}/v1" in result.stderr
    assert "(stream): missed  kimi; " in result.stdout
    assert '    expected [{"name":' in result.stdout
    assert "    got      no call, text '" in result.stdout
    assert "7 more are not right: --worst 8 shows all" in result.stdout


def test_a_gateway_that_answers_from_elsewhere_is_an_error_conf3() -> None:
    """Nothing is judged then: the message says what came instead."""
    with serve_scripted(ScriptedModel(()), "127.0.0.1", 0) as elsewhere:
        result = CliRunner().invoke(conformance, [elsewhere, "--upstream-port", "0", "--wait", "0.1"])
    assert "no request reached the scripted upstream" in str(result.exception)
    assert "status 200" in str(result.exception)

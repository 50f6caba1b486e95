"""`/upstreams/NAME/metrics` shows a model server's own metrics to endpoint pickers (OPS-4)."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from testkit.scripted_upstream import Asked, ScriptedUpstream, listening, refuse
from tests.gateway.scene import UPSTREAM_KEY, config_of, key, serving, towards
from toolspeak.config.shape import Config, Upstream
from toolspeak.gateway import upstream_metrics
from toolspeak.runtime.transport import Timeouts

PAGE = b'# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name="m"} 3.0\n'
TYPE = "text/plain; version=0.0.4; charset=utf-8"


def page(body: bytes = PAGE, media_type: str = TYPE) -> Any:  # noqa: ANN401 # a script
    async def send(asked: Asked) -> None:
        asked.head(200, media_type, length=len(body))
        asked.writer.write(body)
        await asked.writer.drain()
        asked.done.set()

    return send


@pytest.fixture
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        yield scripted


def shown(upstream: ScriptedUpstream, **more: Any) -> Upstream:  # noqa: ANN401 # as `towards`
    return towards(upstream, expose_metrics=True, **more)


def message(config: Config, path: str, status: int) -> str:
    with serving(config) as gateway:
        reply = gateway.ask("GET", path)
    assert reply.status == status
    return str(reply.json["error"]["message"])


def test_the_page_is_that_of_the_server_ops4(upstream: ScriptedUpstream) -> None:
    upstream.answers(page())
    with serving(config_of(shown(upstream))) as gateway:
        reply = gateway.ask("GET", "/upstreams/up/metrics", headers={"accept": "text/plain", "x-own": "1"})
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, PAGE, TYPE)
    assert reply.headers["x-content-type-options"] == "nosniff"
    (asked,) = upstream.asked
    assert (asked.method, asked.path, asked.headers["accept"]) == ("GET", "/metrics", "text/plain")
    assert "x-own" not in asked.headers
    assert UPSTREAM_KEY in asked.headers["authorization"]


def test_without_the_setting_it_is_not_there_ops4(upstream: ScriptedUpstream) -> None:
    said = message(config_of(towards(upstream)), "/upstreams/up/metrics", 404)
    assert "set expose_metrics = true under [upstreams.up]" in said
    for path in ("other/metrics", "up", "up/props", "up/metrics/x", "", "up/../metrics", "up/1/1/metrics"):
        message(config_of(shown(upstream)), f"/upstreams/{path}", 404)
    assert upstream.asked == []


def test_one_of_several_servers_by_its_number_ops4(upstream: ScriptedUpstream) -> None:
    with listening(("m",)) as second:
        upstream.answers(page(b"a 1\n"))
        second.answers(page(b"a 2\n"), page(b"a 2\n"))
        config = config_of(shown(upstream, more_urls=(f"http://127.0.0.1:{second.port}/v1",)))
        with serving(config) as gateway:
            assert gateway.ask("GET", "/upstreams/up/1/metrics").body == b"a 1\n"
            assert gateway.ask("GET", "/upstreams/up/2/metrics").body == b"a 2\n"
            assert gateway.ask("HEAD", "/upstreams/up/2/metrics").body == b""
            for path in ("/upstreams/up/0/metrics", "/upstreams/up/3/metrics"):
                assert "its servers are 1 to 2" in gateway.ask("GET", path).json["error"]["message"]
            said = gateway.ask("GET", "/upstreams/up/metrics")
            assert (said.status, "/upstreams/up/1/metrics" in said.body.decode()) == (404, True)


def test_keys_are_asked_for_as_for_metrics_and_no_rate_is_spent_ops4(upstream: ScriptedUpstream) -> None:
    upstream.answers(page(), page(), page())
    config = config_of(shown(upstream), keys=(key("sk-anna-1234", requests_per_minute=1),))
    with serving(config) as gateway:
        assert gateway.ask("GET", "/upstreams/up/metrics").status == 401
        for _ in range(3):
            known = {"authorization": "Bearer sk-anna-1234"}
            assert gateway.ask("GET", "/upstreams/up/metrics", headers=known).status == 200


def test_a_page_that_is_not_metrics_is_not_passed_on_ops4(upstream: ScriptedUpstream) -> None:
    """HTML of a model server would run scripts in the dashboard's origin."""
    upstream.answers(page(b"<script>alert(1)</script>", "text/html"))
    assert "answers /metrics with no metrics" in message(config_of(shown(upstream)), "/upstreams/up/metrics", 502)


def test_a_server_without_metrics_is_named_ops4(upstream: ScriptedUpstream) -> None:
    for status in (404, 501):
        upstream.answers(refuse(status, "no"))
        said = message(config_of(shown(upstream)), "/upstreams/up/metrics", 404)
        assert f"'up' has no /metrics (it answers {status})" in said
        assert "llama.cpp with --metrics" in said


def test_size_and_time_are_limited_ops4(upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_metrics, "_MOST", 100)
    upstream.answers(page(b"a" * 100))
    with serving(config_of(shown(upstream))) as gateway:
        assert gateway.ask("GET", "/upstreams/up/metrics").status == 200
    upstream.answers(page(b"a" * 101))
    assert "is over 100 bytes" in message(config_of(shown(upstream)), "/upstreams/up/metrics", 502)

    async def silent(asked: Asked) -> None:
        del asked
        await asyncio.sleep(30)

    upstream.answers(silent)
    slow = shown(upstream, timeouts=Timeouts(first_byte=0.3))
    assert message(config_of(slow), "/upstreams/up/metrics", 504)


def test_requests_for_metrics_do_not_eject_a_server_ops4(upstream: ScriptedUpstream) -> None:
    """A picker asks twenty times a second."""
    upstream.answers(refuse(500, "it is broken"))
    with serving(config_of(shown(upstream))) as gateway:
        replica = gateway.app.gateway.directory.pools()["up"].replicas[0]
        assert {gateway.ask("GET", "/upstreams/up/metrics").status for _ in range(12)} == {500}
        assert (replica.failed, replica.is_out) == (0, False)


def test_a_server_that_is_away_is_told_ops4() -> None:
    gone = Upstream("up", "http://127.0.0.1:9/v1", expose_metrics=True)
    assert "no connection to the upstream" in message(config_of(gone), "/upstreams/up/metrics", 502)

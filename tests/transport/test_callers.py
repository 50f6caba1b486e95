"""The SDK's key goes only to the SDK's own server, and settings that protect a server from clients are off."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testkit.scripted_upstream import JSON, listening, refuse, say
from testkit.vendor_answers import WHOLES, Answer
from tests.gateway.scene import config_of, key, towards
from tests.transport.scene import KINDS, Kind, body, streamed, text_of
from toolspeak.config.shape import Config, Limits, Traces
from toolspeak.engine.verdict import Depth
from toolspeak.transport.application import in_process
from toolspeak.upstreams import Auth

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
WELL = say(json.dumps(WHOLES["openai_chat"](Answer("well"))).encode(), JSON)
SDK_KEY = {"authorization": "Bearer sk-of-the-sdk"}


def authorized(kind: Kind, base: str = "", headers: dict[str, str] | None = None, **options: Any) -> str | None:  # noqa: ANN401 -- as the transport
    """Return the key that the upstream gets from an SDK with a key and this base URL."""
    with listening() as upstream:
        upstream.answers(WELL)
        place = f"http://127.0.0.1:{upstream.port}"
        with kind.client(upstream, base.format(place=place) or place + "/v1", **options) as client:
            assert client.open(body(stream=False), headers=headers or SDK_KEY).rest()
        asked, listed = upstream.asked[0].headers, [each.headers for each in upstream.listings]
        assert all(each.get("authorization") == asked.get("authorization") for each in listed)
        return asked.get("authorization")


@EACH
def test_the_sdks_key_goes_to_the_server_that_the_sdk_is_set_up_for_safe_6(kind: Kind) -> None:
    assert authorized(kind) == "Bearer sk-of-the-sdk"


@EACH
@pytest.mark.parametrize(
    "base", ["https://api.openai.com/v1", "https://127.0.0.1/v1", "http://127.0.0.1:1/v1", "http://example.com/v1"]
)
def test_the_sdks_key_goes_nowhere_else_safe_6(kind: Kind, base: str) -> None:
    """`OpenAI()` reads OPENAI_API_KEY by itself, and means it for the vendor."""
    assert authorized(kind, base) is None


@EACH
def test_a_configured_key_wins_over_the_sdks_safe_6(kind: Kind) -> None:
    assert authorized(kind, key="sk-configured") == "Bearer sk-configured"


@EACH
def test_the_key_of_another_vendors_header_becomes_the_upstreams(kind: Kind) -> None:
    assert authorized(kind, headers={"x-api-key": "sk-ant"}) == "Bearer sk-ant"


@EACH
def test_of_two_keys_none_is_sent_safe_6(kind: Kind) -> None:
    assert authorized(kind, headers={"x-api-key": "sk-ant", **SDK_KEY}) is None


@EACH
def test_each_request_has_its_own_key_safe_6(kind: Kind) -> None:
    with listening() as upstream:
        upstream.answers(WELL)
        with kind.client(upstream, upstream.url) as client:
            for name in ("sk-one", "sk-two"):
                client.open(body(stream=False), headers={"authorization": f"Bearer {name}"}).rest()
        assert [each.headers["authorization"] for each in upstream.asked] == ["Bearer sk-one", "Bearer sk-two"]


@EACH
def test_an_error_that_echoes_the_key_is_cleaned_safe_6(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream, upstream.url) as client:
        upstream.answers(refuse(401, {"error": {"message": "no such key: sk-of-the-sdk"}}))
        reply = client.open(body(stream=False), headers=SDK_KEY)
        assert reply.response.status_code == 401
        assert "sk-of-the-sdk" not in reply.rest().decode()


@EACH
def test_the_prefix_of_the_upstreams_base_url_is_not_part_of_the_path(kind: Kind) -> None:
    with listening() as upstream:
        upstream.answers(WELL)
        url = f"http://127.0.0.1:{upstream.port}/openai/v1"
        with kind.client(url, url) as client:
            assert client.open(body(stream=False)).response.status_code == 200
        assert upstream.asked[0].path == "/openai/v1/chat/completions"


@EACH
def test_a_configuration_of_a_server_serves_a_program(kind: Kind, tmp_path: Path) -> None:
    """Its keys are for clients over the network; its limits are those of a process of its own."""
    with listening() as upstream:
        upstream.answers(streamed("well"))
        file = tmp_path / "toolspeak.toml"
        file.write_text(
            f'[upstreams.up]\nurl = "{upstream.url}"\n[[keys]]\ntenant = "t"\nkey = "sk-client-key"\n'
            "[limits]\nmemory_bytes = 1\nconcurrent = 1\n"
        )
        with kind.client("", config=str(file)) as client:
            assert text_of(client.open(body()).rest()) == "well"


def test_what_is_different_in_a_process() -> None:
    with listening() as upstream:
        server = config_of(towards(upstream, auth=Auth.BEARER), keys=(key("k"),), limits=Limits(body_bytes=5))
    inside = in_process(replace(server, server=replace(server.server, probe=None)))
    assert inside.keys == ()
    assert not inside.dashboard.enabled
    assert not inside.offer.enabled
    assert not inside.traces.enabled
    assert inside.server.probe is Depth.LOOK
    assert (inside.limits.body_bytes, inside.limits.memory_bytes) == (5, sys.maxsize)
    assert inside.upstreams == server.upstreams


def test_what_the_user_has_said_stays() -> None:
    said = Config(traces=Traces(database="/tmp/traces.sqlite"))  # noqa: S108 # it is not opened
    said = replace(said, server=replace(said.server, probe=Depth.FULL))
    inside = in_process(said)
    assert inside.traces.enabled
    assert inside.server.probe is Depth.FULL

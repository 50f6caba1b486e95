"""The public keys of an identity provider: which are used, and when they are fetched (SAFE-12)."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from typing_extensions import override

from tests.gateway.identity_provider import (
    AUDIENCE,
    ISSUER,
    Provider,
    encoded,
    key_set,
    private,
    providing,
    public,
    rsa_key,
)
from toolspeak.config.assemble import outbound_of
from toolspeak.config.file import parse_config
from toolspeak.config.options import NO_OPTIONS
from toolspeak.config.overlay import with_options
from toolspeak.config.shape import JWT_ALGORITHMS, Jwt
from toolspeak.gateway import jwks
from toolspeak.gateway.jwks import ProviderKeys, read_key_set
from toolspeak.gateway.key_records import KeysUnavailable
from toolspeak.runtime.clock import CLOCK, Clock


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as served:
        yield served


class Moved(Clock):
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.ahead = 0.0

    @override
    def monotonic(self) -> float:
        return CLOCK.monotonic() + self.ahead

    @override
    def seconds(self) -> int:
        return int(CLOCK.seconds() + self.ahead)


# ---------------------------------------------------------------- key sets


def found_keys(*keys: object, algorithms: tuple[str, ...] = JWT_ALGORITHMS) -> set[tuple[str, str]]:
    return {*read_key_set(json.dumps({"keys": keys}).encode(), algorithms)}


def test_a_key_is_used_only_as_it_is_meant_safe12() -> None:
    provider = private("RS256")
    assert found_keys(public(provider, "a", alg="RS512")) == {("a", "RS512")}
    assert found_keys(public(provider, "a", use="enc")) == set()
    assert found_keys(public(provider, "a", alg="RSA-OAEP")) == set()
    assert found_keys(public(private("ES384"), "e")) == {("e", "ES384")}
    assert found_keys(public(provider, "a"), algorithms=("ES256",)) == set()


def test_keys_that_cannot_be_used_are_left_out_safe12() -> None:
    good = public(private("ES256"), "good")
    secret = {"kty": "oct", "k": encoded(b"x" * 32), "kid": "s"}
    bad = [
        7,
        {},
        {"kid": "x"},
        secret,
        {**good, "kid": 1},
        {**good, "x": "AAAA"},
        {**good, "x": 5},
        {**good, "y": None},
    ]
    assert found_keys(*bad, good) == {("good", "ES256")}
    assert found_keys(public(rsa_key("short", 1024), "short")) == set()


def test_of_a_private_key_only_the_public_part_is_read_safe12() -> None:
    published = RSAAlgorithm.to_jwk(rsa_key("provider"), as_dict=True)
    assert "d" in published
    data = json.dumps({"keys": [{**published, "kid": "a"}]}).encode()
    (found,) = read_key_set(data, ("RS256",)).values()
    assert isinstance(found.key, rsa.RSAPublicKey)


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b"{}", b'{"keys": 1}', b'{"keys":' + b"[" * 9999, b"\xff"])
def test_an_answer_that_is_no_key_set_is_told_safe12(data: bytes) -> None:
    with pytest.raises(KeysUnavailable, match="no key set"):
        read_key_set(data, ("RS256",))


# ---------------------------------------------------------------- fetching keys


async def keys_of(provider: Provider, clock: Clock = CLOCK, pause: float = 0.0, **more: float) -> ProviderKeys:
    keys = ProviderKeys(replace(Jwt(ISSUER, AUDIENCE, provider.url), **cast("Any", more)), clock, pause)
    await keys.start()
    return keys


def in_loop(work: Callable[[], Any]) -> None:
    asyncio.run(work())


def test_a_new_key_is_fetched_when_its_first_token_arrives_safe12(provider: Provider) -> None:
    async def rotate() -> None:
        keys = await keys_of(provider)
        assert await keys.find("RS256", "RS256") is not None
        provider.body = json.dumps({"keys": [public(rsa_key("new"), "new")]}).encode()
        assert await keys.find("new", "RS256") is not None
        assert await keys.find("RS256", "RS256") is None, "a key that is withdrawn is no longer accepted"
        await keys.stop()

    in_loop(rotate)


def test_a_withdrawn_key_ends_with_the_next_refresh_safe12(provider: Provider) -> None:
    async def withdraw() -> None:
        keys = await keys_of(provider, refresh=0.05)
        assert await keys.find("RS256", "RS256") is not None
        provider.body = json.dumps({"keys": [public(rsa_key("new"), "new")]}).encode()
        async with asyncio.timeout(5):
            while await keys.find("new", "RS256") is None:
                await CLOCK.sleep(0.02)
        assert await keys.find("RS256", "RS256") is None
        await keys.stop()

    in_loop(withdraw)


def test_invented_key_ids_do_not_flood_the_provider_safe12(provider: Provider) -> None:
    clock = Moved()

    async def flood() -> None:
        keys = await keys_of(provider, clock, pause=10.0)
        provider.delay = 0.05
        assert await asyncio.gather(*(keys.find(f"invented-{each}", "RS256") for each in range(100))) == [None] * 100
        assert [await keys.find(f"invented-{each}", "RS256") for each in range(20)] == [None] * 20
        assert provider.fetched == 1
        clock.ahead += 10
        await asyncio.gather(*(keys.find(f"invented-{each}", "RS256") for each in range(100)))
        assert provider.fetched == 2
        assert await keys.find("RS256", "RS256") is not None, "known keys do not wait"
        await keys.stop()

    in_loop(flood)


def test_a_client_that_hangs_up_does_not_end_the_fetch_of_others_safe12(provider: Provider) -> None:
    async def leave() -> None:
        provider.delay = 0.2
        keys = await keys_of(provider)
        first, second = (asyncio.ensure_future(keys.find("RS256", "RS256")) for _ in range(2))
        await asyncio.sleep(0.05)
        first.cancel()
        assert await second is not None
        assert provider.fetched == 1
        await keys.stop()

    in_loop(leave)


BROKEN: dict[str, Callable[[Provider], object]] = {
    "an error": lambda provider: setattr(provider, "status", 500),
    "a page": lambda provider: setattr(provider, "body", b"<html>maintenance</html>"),
    "too much": lambda provider: setattr(provider, "body", key_set() + b" " * (512 << 10)),
    "a redirect to another host": lambda provider: (
        setattr(provider, "status", 302),
        provider.headers.update(location="http://127.0.0.1:9/keys"),
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_known_keys_are_used_while_the_provider_is_away_but_not_for_ever_safe12(
    provider: Provider, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    clock = Moved()

    async def lose() -> None:
        keys = await keys_of(provider, clock, max_stale=3600.0)
        assert await keys.find("RS256", "RS256") is not None
        body = provider.body
        BROKEN[how](provider)
        clock.ahead += 3000
        assert await keys.find("unknown", "RS256") is None
        assert await keys.find("RS256", "RS256") is not None
        clock.ahead += 700
        with pytest.raises(KeysUnavailable):
            await keys.find("RS256", "RS256")
        provider.status, provider.body = 200, body
        provider.headers.clear()
        assert await keys.find("RS256", "RS256") is not None
        await keys.stop()

    in_loop(lose)
    logged = [(each.levelno, each.getMessage()) for each in caplog.records if each.name == jwks.__name__]
    assert [level for level, _ in logged] == [logging.ERROR, logging.WARNING], "an outage is one line, and its end"
    assert "2 known ones are used for 600 s more, then tokens get 503" in logged[0][1]


def test_a_provider_without_a_usable_key_is_told_safe12(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    provider.body = b'{"keys": []}'

    async def look() -> None:
        keys = await keys_of(provider)
        assert await keys.find("RS256", "RS256") is None
        await keys.stop()

    in_loop(look)
    assert "has no key for access.jwt.algorithms: no token is accepted" in caplog.text


def test_keys_are_fetched_through_the_proxy_of_the_network_safe8() -> None:
    text = '[access.jwt]\nissuer = "i"\naudience = "a"\njwks_url = "https://idp.example.com/keys"\n'
    config = parse_config(text, "t.toml", {})
    found = with_options(config, NO_OPTIONS, {"HTTPS_PROXY": "http://proxy.example.com:3128"}).access.jwt.outbound
    assert found.proxy_url == "http://proxy.example.com:3128"
    local = parse_config(text.replace("https://idp.example.com", "http://127.0.0.1:1"), "t.toml", {})
    found = with_options(local, NO_OPTIONS, {"HTTP_PROXY": "http://proxy.example.com:3128"}).access.jwt.outbound
    assert found.proxy_url is None
    assert outbound_of(config) == {}

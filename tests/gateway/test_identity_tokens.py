"""Tokens (JWT) of an identity provider identify tenants as keys do, and what is no such token is refused (SAFE-12)."""

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.identity_provider import (
    AUDIENCE,
    CANARY,
    ISSUER,
    Provider,
    claims,
    encoded,
    key_set,
    private,
    providing,
    public,
    rsa_key,
    signed,
)
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from tests.gateway.test_auth import CARRIERS, showing
from toolspeak.config import check_public
from toolspeak.config.shape import JWT_ALGORITHMS, Access, Config, Jwt, Key, RateLimits, Server, TenantRule
from toolspeak.errors import MissingExtra
from toolspeak.gateway import server
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.identity_tokens import LONGEST, IdentityTokens
from toolspeak.gateway.jwks import ProviderKeys
from toolspeak.gateway.reload import Reloader
from toolspeak.runtime.clock import CLOCK, Clock

ASKED = question("openai_chat")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as served:
        yield served


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with listening() as listened:
        listened.answers(answering(Answer("It is cold.")))
        yield listened


@dataclass
class Checked:
    """Checks tokens in an event loop of its own, without a gateway."""

    settings: Jwt
    audit: Path
    clock: Clock = CLOCK

    def run(self, *tokens: str) -> list[Key | Refused]:
        async def check() -> list[Key | Refused]:
            audit = AuditLog(self.audit, self.clock)
            checker = IdentityTokens(self.settings, ProviderKeys(self.settings, self.clock), audit, self.clock)
            await checker.start()
            found: list[Key | Refused] = []
            try:
                for token in tokens:
                    try:
                        found.append(await checker.check(token, "10.0.0.7"))
                    except Refused as refused:
                        found.append(refused)
            finally:
                audit.flush()
                await checker.stop()
            return found

        return asyncio.run(check())

    def key(self, token: str) -> Key:
        (found,) = self.run(token)
        assert isinstance(found, Key), found
        return found

    def refusal(self, token: str) -> tuple[str, Refused]:
        """Return the reason in the audit log, and what the client gets."""
        (found,) = self.run(token)
        assert isinstance(found, Refused), found
        written = self.audit.read_text()
        said = found.failure.message
        assert not any(part and part in written + said for part in (*token.split("."), token, CANARY))
        line = json.loads(written.splitlines()[-1])
        assert (line["event"], line["client"]) == ("refused", "10.0.0.7")
        return line["reason"], found


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    """Check with keys from a file."""
    (tmp_path / "jwks.json").write_bytes(key_set(*JWT_ALGORITHMS))
    settings = Jwt(ISSUER, AUDIENCE, jwks_file=str(tmp_path / "jwks.json"))
    return Checked(settings, tmp_path / "audit.jsonl")


# ---------------------------------------------------------------- what is accepted


@pytest.mark.parametrize("algorithm", JWT_ALGORITHMS)
def test_a_token_of_each_algorithm_names_its_tenant_safe12(checked: Checked, algorithm: str) -> None:
    checked.settings = replace(checked.settings, algorithms=(algorithm,))
    found = checked.key(signed(algorithm))
    assert (found.tenant, found.models, found.limits, found.label) == ("anna", (), RateLimits(), "jwt:anna")


def test_an_audience_among_several_is_enough_safe12(checked: Checked) -> None:
    assert checked.key(signed(aud=["other", AUDIENCE])).tenant == "anna"


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_tokens_of_access_are_accepted_safe12(checked: Checked, kind: str) -> None:
    assert checked.key(signed(header={"typ": kind})).tenant == "anna"


def test_clocks_may_differ_by_the_leeway_safe12(checked: Checked) -> None:
    now = int(time.time())
    assert checked.key(signed(exp=now - 20, nbf=now + 20, iat=now + 20)).tenant == "anna"


def test_the_first_pattern_that_matches_has_the_models_and_limits_safe12(checked: Checked) -> None:
    rules = (TenantRule("team-*", ("small",), RateLimits(60)), TenantRule("*", (), RateLimits(concurrent=2)))
    checked.settings = replace(checked.settings, tenants=rules)
    found = checked.key(signed(sub="team-a"))
    assert (found.models, found.limits) == (("small",), RateLimits(60))
    assert checked.key(signed(sub="anna")).limits == RateLimits(concurrent=2)


@pytest.mark.parametrize("said", [["small", "up:*"], "small up:*"])
def test_a_claim_lists_the_models_safe12(checked: Checked, said: object) -> None:
    checked.settings = replace(checked.settings, models_claim="models", tenant_claim="azp")
    found = checked.key(signed(models=said, azp="build@ci"))
    assert (found.tenant, found.models) == ("build@ci", ("small", "up:*"))


# ---------------------------------------------------------------- attacks: nothing but the signature is believed


def unsigned(header: dict[str, Any]) -> str:
    return f"{encoded({'kid': 'RS256', **header})}.{encoded(claims())}."


def hmac_with_the_public_key() -> str:
    pem = rsa_key("provider").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = f"{encoded({'alg': 'HS256', 'kid': 'RS256'})}.{encoded(claims())}"
    return f"{head}.{encoded(hmac.new(pem, head.encode(), hashlib.sha256).digest())}"


def with_a_key_of_its_own() -> str:
    own = rsa_key("attacker")
    return jwt.encode(claims(), own, "RS256", {"kid": "RS256", "jwk": public(own, "RS256")})


def with_an_address_of_keys() -> str:
    header = {"kid": "theirs", "jku": "http://127.0.0.1:9/keys", "x5u": "http://127.0.0.1:9/cert"}
    return jwt.encode(claims(), rsa_key("attacker"), "RS256", header)


def with_another_payload() -> str:
    head, _, signature = signed().split(".")
    return f"{head}.{encoded(claims(sub='admin'))}.{signature}"


def with_another_header() -> str:
    """Change the algorithm of a right token to another one of the same key."""
    _, payload, signature = signed().split(".")
    return f"{encoded({'alg': 'RS512', 'kid': 'RS256'})}.{payload}.{signature}"


def with_a_null_signature() -> str:
    """Sign with r = s = 0, which Java accepted for every ECDSA key ("psychic signatures", CVE-2022-21449)."""
    return f"{encoded({'alg': 'ES256', 'kid': 'ES256'})}.{encoded(claims())}.{encoded(bytes(64))}"


FORGED: dict[str, tuple[Callable[[], str], str]] = {
    "alg none": (lambda: unsigned({"alg": "none"}), "algorithm"),
    "alg NoNe": (lambda: unsigned({"alg": "NoNe"}), "algorithm"),
    "no signature under a real algorithm": (lambda: unsigned({"alg": "RS256"}), "signature"),
    "HS256 with the public key as its secret": (hmac_with_the_public_key, "algorithm"),
    "an algorithm that is not configured": (lambda: signed("ES384"), "algorithm"),
    "another algorithm of the same key": (with_another_header, "algorithm"),
    "a key of an EC curve for RS256": (lambda: signed(kid="ES256"), "unknown key"),
    "a key that the token brings along": (with_a_key_of_its_own, "signature"),
    "an address of keys that the token brings along": (with_an_address_of_keys, "unknown key"),
    "another payload under a right signature": (with_another_payload, "signature"),
    "a signature of zeros": (with_a_null_signature, "signature"),
    "the key of another provider": (lambda: jwt.encode(claims(), rsa_key("a"), "RS256", {"kid": "RS256"}), "signature"),
    "no key id": (lambda: jwt.encode(claims(), private("RS256"), "RS256"), "unknown key"),
    "a key id that is a path": (lambda: signed(kid="../../dev/null"), "unknown key"),
    "a key id that is no string": (lambda: unsigned({"alg": "RS256", "kid": [1]}), "malformed"),
    "an extension that must be understood": (lambda: signed(header={"crit": ["exp"], "exp": 1}), "type"),
    "a payload outside of the token": (lambda: unsigned({"alg": "RS256", "b64": False, "crit": ["b64"]}), "type"),
    "a logout token": (lambda: signed(header={"typ": "logout+jwt"}), "type"),
    "a token over the limit": (lambda: signed(more="x" * LONGEST), "too long"),
    "a header that is nested 4,000 deep": (lambda: encoded(b'{"a":' + b"[" * 4000) + ".e30.", "malformed"),
    "claims that are nested deep": (lambda: jws(b'{"a":' + b"[" * 5000), "malformed"),
    "a header that is an array": (lambda: f"eyJ{encoded([1])}.e30.", "malformed"),
    "a header with bytes that are no text": (lambda: encoded(b'{"alg":"\xff"}') + ".e30.", "malformed"),
    "a header that is no base64": (lambda: "eyJ===a.e30.e30", "malformed"),
    "claims that are no object": (lambda: jws(b"[1]"), "malformed"),
    "claims that are no JSON": (lambda: jws(b"\xff"), "malformed"),
}


def jws(payload: bytes) -> str:
    """Sign any bytes with the provider's key."""
    return jwt.PyJWS().encode(payload, private("RS256"), "RS256", {"kid": "RS256"})


@pytest.mark.parametrize("attack", FORGED)
def test_a_forged_token_is_refused_and_told_no_more_than_that_safe12(checked: Checked, attack: str) -> None:
    make, reason = FORGED[attack]
    found, refused = checked.refusal(make())
    assert found == f"token: {reason}"
    assert (refused.failure.status, refused.failure.message.split(":")[0]) == (401, "this token is not accepted")


NOW = int(time.time())
CLAIMS: dict[str, tuple[dict[str, object], str, str]] = {
    "an expired token": ({"exp": NOW - 3600}, "expired", "this token has expired"),
    "an expiry in 1970": ({"exp": 0}, "expired", "this token has expired"),
    "a token for ever": ({"exp": None}, "no expiry", "lacks a claim"),
    "an expiry that is true": ({"exp": True}, "no expiry", "lacks a claim"),
    "an expiry that is text": ({"exp": "9999999999"}, "no expiry", "lacks a claim"),
    "a token of tomorrow": ({"nbf": NOW + 3600}, "not valid yet", "not valid yet"),
    "a token that is made in the future": ({"iat": NOW + 3600}, "not valid yet", "not valid yet"),
    "a beginning that is no time": ({"nbf": "now"}, "not valid yet", "not valid yet"),
    "another issuer": ({"iss": "https://evil.example.com"}, "issuer", "another service"),
    "an issuer with a slash more": ({"iss": f"{ISSUER}/"}, "issuer", "another service"),
    "no issuer": ({"iss": None}, "issuer", "another service"),
    "a list of issuers": ({"iss": [ISSUER]}, "issuer", "another service"),
    "another audience": ({"aud": "payroll"}, "audience", "another service"),
    "an audience that contains ours": ({"aud": "toolspeak-test"}, "audience", "another service"),
    "no audience": ({"aud": None}, "audience", "another service"),
    "an empty list of audiences": ({"aud": []}, "audience", "another service"),
    "no tenant": ({"sub": None}, "tenant", "lacks a claim"),
    "an empty tenant": ({"sub": ""}, "tenant", "lacks a claim"),
    "a tenant that is a number": ({"sub": 7}, "tenant", "lacks a claim"),
    "a tenant with a line break, for the log": ({"sub": "anna\n{}"}, "tenant", "lacks a claim"),
    "a tenant that is a path": ({"sub": "../anna"}, "tenant", "lacks a claim"),
    "a tenant that is a pattern": ({"sub": "*"}, "tenant", "lacks a claim"),
    "a tenant that looks like another by its letters": ({"sub": "\u0430nna"}, "tenant", "lacks a claim"),
    "a tenant of 65 letters": ({"sub": "a" * 65}, "tenant", "lacks a claim"),
}


@pytest.mark.parametrize("attack", CLAIMS)
def test_a_token_with_claims_for_another_time_or_place_is_refused_safe12(checked: Checked, attack: str) -> None:
    said, reason, words = CLAIMS[attack]
    found, refused = checked.refusal(jws(json.dumps(claims(**said)).encode()))  # PyJWT's own encoder refuses some
    assert (found, refused.failure.status) == (f"token: {reason}", 401)
    assert words in refused.failure.message


@pytest.mark.parametrize("said", [None, [], "", "  ", 7, [7], ["small", ""], {"small": True}])
def test_a_token_without_a_list_of_models_has_not_all_of_them_safe12(checked: Checked, said: object) -> None:
    checked.settings = replace(checked.settings, models_claim="models")
    assert checked.refusal(signed(models=said))[0] == "token: models"


def test_the_tenant_is_in_the_audit_log_only_if_it_is_proven_safe12(checked: Checked) -> None:
    checked.run(signed(exp=1), with_another_payload(), signed(aud="payroll"))
    lines = [json.loads(line) for line in checked.audit.read_text().splitlines()]
    assert [(line["key"], line.get("tenant")) for line in lines] == [("jwt:anna", "anna"), ("jwt", None), ("jwt", None)]


# ---------------------------------------------------------------- through the gateway


def access_of(provider: Provider, folder: Path, **more: Any) -> Access:  # noqa: ANN401 # any setting
    return Access(folder=folder, jwt=replace(Jwt(ISSUER, AUDIENCE, provider.url), **more))


def turn(gateway: Served, sent: str, model: str = "up:m") -> int:
    body = {**cast("dict[str, Any]", ASKED.body), "model": model}
    return gateway.post(ASKED.path, body, {"authorization": f"Bearer {sent}"}).status


def audit_of(folder: Path) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    return [(line["key"], line["reason"]) for line in lines]


def test_a_token_enters_in_each_place_for_a_key_of_each_protocol_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    good, bad = signed("ES256"), signed(exp=1)
    with serving(config_of(towards(upstream), access=access_of(provider, tmp_path))) as gateway:
        for wire in WIRES:
            asked = question(wire)
            for carrier in CARRIERS:
                right, wrong = showing(asked, carrier, good), showing(asked, carrier, bad)
                assert gateway.post(right.path, right.body, right.headers).status == 200, (wire, carrier)
                refused = gateway.post(wrong.path, wrong.body, wrong.headers)
                assert refused.status == 401, (wire, carrier)
                assert "this token has expired: get a new one" in json.dumps(refused.json["error"]), (wire, carrier)
        assert gateway.post(ASKED.path, ASKED.body).status == 401
        assert turn(gateway, "no-token") == 401
    written = "".join(each.read_text() for each in tmp_path.iterdir()) + caplog.text
    assert not any(part in written for token in (good, bad) for part in token.split(".")[1:])
    assert {*audit_of(tmp_path)} == {("jwt:anna", "token: expired")}


def test_models_limits_and_tenants_of_tokens_are_those_of_keys_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    rules = (TenantRule("anna", ("up:m",)), TenantRule("*", (), RateLimits(requests_per_minute=1)))
    config = config_of(
        towards(upstream), access=access_of(provider, tmp_path, tenants=rules), keys=(key("k", "keyed"),)
    )
    with serving(config) as gateway:
        assert [turn(gateway, signed()) for _ in range(2)] == [200, 200]
        assert turn(gateway, signed(), "up:other") == 403
        assert [turn(gateway, signed(sub=each)) for each in ("bert", "cleo", "bert", "cleo")] == [200, 200, 429, 429]
        limited = gateway.post(ASKED.path, ASKED.body, {"x-api-key": signed(sub="bert")}).body.decode()
        assert "this tenant may send 1 requests a minute (access.jwt.tenants.PATTERN.requests_per_minute)" in limited
        assert turn(gateway, "k") == 200, "keys go on working beside tokens"
        traces = gateway.ask("GET", "/traces", headers={"x-api-key": signed(sub="dora")})
        assert traces.json["traces"] == [], "a tenant sees its own traces"
    assert ("jwt:bert", "limit of the key: requests_per_minute") in audit_of(tmp_path)


def test_a_request_with_a_token_and_a_key_of_another_tenant_is_refused_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    config = config_of(towards(upstream), access=access_of(provider, tmp_path), keys=(key("k", "bert"),))

    def both(*sent: str) -> int:
        headers: dict[str, str] = dict(
            zip(("authorization", "x-api-key", "api-key"), (f"Bearer {sent[0]}", *sent[1:]), strict=False)
        )
        return gateway.post(ASKED.path, ASKED.body, headers).status

    with serving(config) as gateway:
        token = signed()
        assert both(token, "k") == 401
        assert both(token, signed(sub="bert")) == 401
        assert both(token, token) == 200, "one token in two places is one"
        assert both(token, "dummy") == 200, "SDKs send a placeholder in the other header"
        assert both(signed(exp=1), "k") == 200
        many = "&".join(f"key={signed(kid=str(each))}" for each in range(5))
        assert gateway.post(f"{ASKED.path}?{many}", ASKED.body, {"x-api-key": token}).status == 401


def test_a_key_that_looks_like_a_token_stays_a_key_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    fixed = jwt.encode({"sub": "old"}, "s" * 32, "HS256")
    with serving(config_of(towards(upstream), keys=(key(fixed),))) as gateway:
        assert (turn(gateway, fixed), turn(gateway, signed())) == (200, 401)
    access = access_of(provider, tmp_path)
    with serving(config_of(towards(upstream), keys=(key(fixed),), access=access)) as gateway:
        assert (turn(gateway, fixed), turn(gateway, signed())) == (200, 200)
    assert not (tmp_path / "audit.jsonl").exists(), "it is not checked as a token, and refused"


def test_a_gateway_starts_while_the_provider_is_away_and_answers_503_until_it_is_back_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    provider.status = 503
    with serving(config_of(towards(upstream), access=access_of(provider, tmp_path, refresh=0.2))) as gateway:
        headers = {"authorization": f"Bearer {signed()}"}
        refused = gateway.post(ASKED.path, ASKED.body, headers)
        assert (refused.status, refused.headers["retry-after"]) == (503, "10")
        assert gateway.ask("GET", "/health").status == 200
        provider.status = 200
        assert soon(lambda: turn(gateway, signed()) == 200, 5)
    assert ("jwt", "token: no keys to check it") in audit_of(tmp_path)


def test_a_reload_keeps_tokens_and_says_that_their_settings_need_a_restart_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = config_of(towards(upstream), access=access_of(provider, tmp_path))
    changed = replace(config, keys=(key("k"),), access=Access(folder=tmp_path))
    with serving(config) as gateway:
        reloader = Reloader(gateway.app, lambda: changed)
        asyncio.run_coroutine_threadsafe(reloader.reload(), gateway.server.loop).result(10)
        assert [turn(gateway, sent) for sent in ("k", signed(), signed(exp=1))] == [200, 200, 401]
    assert "[access] has changed: it takes effect after a restart" in caplog.text


def test_the_login_of_the_dashboard_takes_no_token_safe12(
    provider: Provider, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with serving(config_of(towards(upstream), access=access_of(provider, tmp_path))) as gateway:
        headers = {"origin": f"http://127.0.0.1:{gateway.port}", "content-type": "application/x-www-form-urlencoded"}
        assert gateway.ask("POST", "/ui/login", f"key={signed()}".encode(), headers).status == 401


def test_an_address_that_others_reach_is_enough_with_tokens_safe6() -> None:
    check_public(Config(server=Server(host="192.0.2.1"), access=Access(jwt=Jwt(ISSUER, AUDIENCE))))


def test_a_missing_extra_is_told_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(extra: str, purpose: str) -> None:
        raise MissingExtra(purpose, extra)

    monkeypatch.setattr(server, "require_extra", missing)
    with pytest.raises(MissingExtra, match=r"access\.jwt.*toolspeak\[jwt\]"):
        server.build(Config(access=Access(audit="/dev/null", jwt=Jwt(ISSUER, AUDIENCE, "https://idp.example.com"))))

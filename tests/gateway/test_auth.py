"""Who may ask: every protocol × every place for a key × no key, a wrong one, a right one, another tenant's (SAFE-6)."""

import hmac
from collections.abc import Generator
from dataclasses import replace
from hashlib import sha256
from itertools import product
from urllib.parse import quote

import pytest

from testkit.protocols import WIRES, Endpoint, answering, error_faults, question, sides
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import UPSTREAM_KEY, Reply, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Key, Model
from toolspeak.gateway import access
from toolspeak.gateway.access import Keyring

OURS, THEIRS, NOBODYS = "sk-ours-1b9d", "sk-theirs-55e0", "sk-nobodys-0000"
CARRIERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "?key=")
COUNTS = [side for wire in WIRES for side in sides(wire) if "ount" in side.path or "input_tokens" in side.path]
PLACES = [(wire, carrier) for wire in WIRES for carrier in CARRIERS]


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m", "theirs")) as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        yield upstream


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    keys = (key(OURS), key(THEIRS, "they", models=("up:theirs",)))
    with serving(config_of(towards(upstream), keys=keys)) as served:
        assert soon(lambda: bool(upstream.listings), 10)  # the gateway looks at its upstreams from the start on
        yield served


def showing(endpoint: Endpoint, carrier: str, shown: str) -> Endpoint:
    """Show a key at this place."""
    if carrier == "?key=":
        mark = "&" if "?" in endpoint.path else "?"
        return replace(endpoint, path=f"{endpoint.path}{mark}key={shown}")
    value = f"Bearer {shown}" if carrier == "authorization" else shown
    return replace(endpoint, headers={**endpoint.headers, carrier: value})


def sent(gateway: Served, endpoint: Endpoint) -> Reply:
    return gateway.ask(endpoint.method, endpoint.path, endpoint.body, endpoint.headers)


def spoken(endpoint: Endpoint, carrier: str) -> str:
    """Return the protocol of the answer: on shared paths Google's places for a key tell who asks."""
    shared = endpoint.path.startswith("/v1/models") and "anthropic-version" not in endpoint.headers
    return "gemini" if shared and carrier in ("x-goog-api-key", "?key=") else endpoint.wire


@pytest.mark.parametrize(("wire", "carrier"), PLACES)
def test_without_a_valid_key_nobody_gets_in_safe6(
    gateway: Served, upstream: ScriptedUpstream, wire: str, carrier: str
) -> None:
    before = len(upstream.asked), len(upstream.listings)
    for endpoint in (question(wire), question(wire, stream=True), *sides(wire)):
        for shown in (None, NOBODYS, "", OURS[:-1], OURS + "x", OURS.upper(), UPSTREAM_KEY):
            tried = endpoint if shown is None else showing(endpoint, carrier, shown)
            reply = sent(gateway, tried)
            assert reply.status == 401, (tried, reply)
            assert error_faults(spoken(tried, "" if shown is None else carrier), 401, reply.json) == []
            assert OURS not in str(reply)
    assert (len(upstream.asked), len(upstream.listings)) == before
    assert gateway.inside == 0


@pytest.mark.parametrize(("wire", "carrier"), PLACES)
def test_a_valid_key_gets_in_wherever_it_stands_safe6(
    gateway: Served, upstream: ScriptedUpstream, wire: str, carrier: str
) -> None:
    before = len(upstream.asked)
    for endpoint in (question(wire), question(wire, stream=True), *sides(wire)):
        reply = sent(gateway, showing(endpoint, carrier, OURS))
        assert reply.status == 200, (endpoint, reply)
    turns = upstream.asked[before:]
    assert len(turns) == 2
    for asked in turns:
        assert asked.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
        assert OURS not in f"{asked.path} {asked.headers} {asked.body!r}"


@pytest.mark.parametrize(("wire", "carrier"), PLACES)
def test_another_tenants_key_opens_only_its_own_models_safe6(
    gateway: Served, upstream: ScriptedUpstream, wire: str, carrier: str
) -> None:
    before = len(upstream.asked)
    for stream in (False, True):
        refused = sent(gateway, showing(question(wire, stream=stream), carrier, THEIRS))
        assert refused.status == 403, refused
        assert error_faults(wire, 403, refused.json) == []
        assert len(upstream.asked) == before + stream
        own = sent(gateway, showing(question(wire, stream=stream, model="theirs"), carrier, THEIRS))
        assert own.status == 200, own
    for name, status in (("m", 403), ("theirs", 200), ("up:m", 403), ("up/theirs", 200), ("unheard-of", 403)):
        shown = showing(question(wire, model=name.replace("/", "%2F") if wire == "gemini" else name), carrier, THEIRS)
        assert sent(gateway, shown).status == status, name


@pytest.mark.parametrize(
    "endpoint", [side for wire in WIRES for side in sides(wire)], ids=lambda e: f"{e.wire}{e.path}"
)
def test_lists_have_only_what_a_key_may_use_safe6(gateway: Served, endpoint: Endpoint) -> None:
    mine = sent(gateway, showing(endpoint, "authorization", OURS))
    others = sent(gateway, showing(endpoint, "authorization", THEIRS))
    assert mine.status == 200
    about_m = endpoint.path.endswith(("/m", "/api/show")) or endpoint in COUNTS
    assert others.status == (403 if about_m else 200)
    if endpoint.path.endswith(("/models", "/tags")):
        assert '"theirs"' in mine.body.decode().replace("models/theirs", "theirs")
        assert '"m"' in mine.body.decode().replace("models/m", "m")
        assert '"m"' not in others.body.decode().replace("models/m", "m")


def test_two_different_valid_keys_at_once_are_refused_safe6(gateway: Served) -> None:
    """It would not be clear which tenant is counted."""
    for first, second in product(CARRIERS, CARRIERS):
        if first != second:
            both = showing(showing(question("openai_chat"), first, OURS), second, THEIRS)
            assert sent(gateway, both).status == 401, (first, second)
            same = showing(showing(question("openai_chat"), first, OURS), second, OURS)
            assert sent(gateway, same).status == 200, (first, second)
            other = showing(showing(question("openai_chat"), first, OURS), second, NOBODYS)
            assert sent(gateway, other).status == 200, "SDKs show a made-up key beside the real one"


@pytest.mark.parametrize("scheme", ["Basic", "Token", "bearer", "BEARER", "Bearer\t", ""])
def test_only_bearer_is_a_scheme(gateway: Served, scheme: str) -> None:
    asked = replace(question("openai_chat"), headers={"authorization": f"{scheme} {OURS}".strip()})
    assert sent(gateway, asked).status == (200 if scheme.lower() == "bearer" else 401)


def test_what_everybody_may_see_needs_no_key(gateway: Served) -> None:
    for method, path in (("GET", "/health"), ("HEAD", "/"), ("GET", "/"), ("GET", "/api/hello")):
        assert gateway.ask(method, path).status == 200
    for path in ("/v1/nothing", "/metrics", "/../v1/models", "/health/x", "//health", "/health%2f..%2fv1/models"):
        assert gateway.ask("GET", path).status in (401, 404)


def test_every_key_is_compared_and_in_constant_time_safe6(monkeypatch: pytest.MonkeyPatch) -> None:
    """An early end of the comparison, or of the search, would tell how close a guess was."""
    compared: list[tuple[bytes, bytes]] = []

    def counting(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    assert access.compare_digest is hmac.compare_digest
    monkeypatch.setattr(access, "compare_digest", counting)
    keys = [Key(f"t{number}", sha256(b"%d" % number).digest()) for number in range(5)]
    for shown in ("0", "4", "nobody"):
        compared.clear()
        Keyring(keys)._matching(shown)
        assert [one for one, _ in compared] == [key.digest for key in keys]
        assert {len(one) for pair in compared for one in pair} == {32}


def test_without_keys_everybody_on_loopback_may_ask(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream))) as served:
        for wire in WIRES:
            assert sent(served, question(wire)).status == 200
            assert sent(served, showing(question(wire), "authorization", "anything")).status == 200


# ---------------------------------------------------------------- one identity


@pytest.fixture(scope="module")
def aliased(upstream: ScriptedUpstream) -> Generator[Served]:
    """Serve an alias `fast`, and a key that may use only that alias."""
    upstreams = (towards(upstream), towards(upstream, name="gem"))
    alias = Model("fast", "up", "m")
    keys = (key(OURS), key(THEIRS, "they", models=("fast",)))
    with serving(config_of(*upstreams, models=(alias,), keys=keys)) as served:
        yield served


DISGUISES = ("up:fast", "up/fast", "gem:fast", "gem/fast", "up:m", "gem:m", "m", "up:fast:latest", "FAST", "theirs")


@pytest.mark.parametrize("wire", WIRES)
def test_an_alias_is_permitted_only_under_its_own_name_safe6(
    aliased: Served, upstream: ScriptedUpstream, wire: str
) -> None:
    """`gem:fast` reached another upstream with the operator's key, because its bare name is that of an alias."""
    before = len(upstream.asked)
    for name in DISGUISES:
        escaped = quote(name, safe="") if wire == "gemini" else name
        for stream in (False, True):
            refused = sent(aliased, showing(question(wire, stream=stream, model=escaped), "authorization", THEIRS))
            assert refused.status == 403, (name, refused)
    assert len(upstream.asked) == before
    for name in ("fast", "fast:latest"):
        own = sent(aliased, showing(question(wire, model=name), "authorization", THEIRS))
        assert own.status == 200, (name, own)


@pytest.mark.parametrize("count", COUNTS, ids=lambda side: side.path)
def test_tokens_are_counted_only_for_permitted_models_safe6(aliased: Served, count: Endpoint) -> None:
    assert sent(aliased, showing(count, "authorization", THEIRS)).status == 403
    assert sent(aliased, showing(count, "authorization", OURS)).status == 200

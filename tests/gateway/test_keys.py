"""Keys that are made, rotated and revoked while gateways run, from the command line and by the admin API (SAFE-10)."""

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import pytest
from typing_extensions import override

from testkit.protocols import answering, question
from testkit.redis_server import running
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, towards
from tests.gateway.test_rates import Still
from toolspeak.config import check_public
from toolspeak.config.shape import Access, Config, KeyPlace, RateLimits, Server
from toolspeak.errors import BadConfig, BadField
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.key_admin import KeyAdmin, open_key_admin
from toolspeak.gateway.key_records import FORGET, KeyOrder, KeysUnavailable, UnknownKey
from toolspeak.gateway.key_store import FileKeys, KeyStore, RedisKeys
from toolspeak.runtime.clock import CLOCK, Clock

ASKED = question("openai_chat")
ANSWER = Answer("It is cold.")
ADMIN_KEY = "an-admin-key-of-32-characters-00"


class Dated(Clock):
    """A clock whose date somebody moves."""

    def __init__(self) -> None:
        self.now = CLOCK.seconds()

    @override
    def seconds(self) -> int:
        return self.now


@pytest.fixture(params=["file", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Give the settings of a store, of either kind."""
    access = Access(folder=tmp_path / "state")
    if request.param == "file":
        yield {"access": Access(KeyPlace.FILE, folder=access.folder)}
        return
    with running(tmp_path) as redis:
        yield {"access": Access(KeyPlace.REDIS, folder=access.folder), "redis": redis.url}


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with listening() as listened:
        listened.answers(answering(ANSWER))
        yield listened


def audit_of(config: Config) -> list[dict[str, Any]]:
    assert config.access.folder is not None
    file = config.access.folder / "audit.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return [json.loads(line) for line in file.read_text().splitlines()]


def status(gateway: Served, sent: str, model: str = "up:m") -> int:
    return gateway.post(ASKED.path, {**cast("dict[str, Any]", ASKED.body), "model": model}, {"x-api-key": sent}).status


def within(seconds: float, is_so: Callable[[], bool]) -> float:
    """Wait until it is so; return how long it took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.mark.timeout(120)
def test_a_key_is_made_used_limited_rotated_and_revoked_in_two_gateways_within_two_seconds_safe10(
    place: dict[str, Any], upstream: ScriptedUpstream
) -> None:
    config = config_of(towards(upstream), keys=(key("old", "configured"),), **place)
    admin = open_key_admin(config, "cli:root")
    with ExitStack() as stack:
        fleet = [stack.enter_context(serving(config)) for _ in range(2)]

        def all_say(sent: str, wanted: int) -> bool:
            return all(status(gateway, sent) == wanted for gateway in fleet)

        assert all_say("old", 200), "keys of the configuration go on working"
        made, first = admin.make(KeyOrder("anna", ("up:m",), RateLimits(requests_per_minute=1000)))
        within(2.0, lambda: all_say(first, 200))
        assert status(fleet[0], first, "up:other") == 403
        new, second = admin.rotate(made.id, 3600)
        within(2.0, lambda: all_say(second, 200))
        assert all_say(first, 200), "the old key is valid during the overlap"
        admin.revoke(made.id)
        within(2.0, lambda: all_say(first, 401))
        assert all_say(second, 200)
        limited, third = admin.make(KeyOrder("bert", limits=RateLimits(requests_per_minute=1)))
        within(2.0, lambda: status(fleet[0], third) == 200)
        assert status(fleet[0], third) == 429
    events = [(line["event"], line["key"], line.get("reason")) for line in audit_of(config)]
    assert events[:3] == [("made", made.id, None), ("rotated", new.id, None), ("revoked", made.id, None)]
    assert ("refused", made.id, "revoked") in events
    assert ("refused", limited.id, "limit of the key: requests_per_minute") in events
    assert {line["by"] for line in audit_of(config) if "by" in line} == {"cli:root"}
    assert config.access.folder is not None
    written = b"".join(each.read_bytes() for each in config.access.folder.iterdir())
    assert not any(secret.encode() in written for secret in (first, second, third, "old"))


def test_a_key_expires_without_a_change_of_the_store_safe10(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    clock = Dated()
    config = config_of(towards(upstream), access=Access(KeyPlace.FILE, folder=tmp_path))
    record, secret = open_key_admin(config, "t", clock).make(KeyOrder("anna", lasts=60))
    with serving(config, clock) as gateway:
        assert status(gateway, secret) == 200
        clock.now += 60
        reply = gateway.post(ASKED.path, ASKED.body, {"x-api-key": secret})
        assert (reply.status, "a valid key is needed" in reply.body.decode()) == (401, True)
        for _ in range(5):
            status(gateway, secret)
    refusals = [line for line in audit_of(config) if line["event"] == "refused"]
    assert [(line["key"], line["reason"], line["times"]) for line in refusals] == [
        (record.id, "expired", 1),
        (record.id, "expired", 5),
    ], "a client that goes on does not fill the disk: the rest is counted"
    assert refusals[0]["client"] == "127.0.0.1"


def test_a_store_without_a_key_lets_no_client_in_safe10(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    config = config_of(towards(upstream), access=Access(KeyPlace.FILE, folder=tmp_path))
    assert config.needs_key
    with serving(config) as gateway:
        assert status(gateway, "anything") == 401
        assert gateway.ask("GET", "/health").status == 200


@pytest.mark.timeout(60)
def test_known_keys_stay_valid_while_redis_is_away_safe10(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    with running(tmp_path) as redis:
        access = Access(KeyPlace.REDIS, folder=tmp_path)
        config = config_of(towards(upstream), access=access, redis=redis.url)
        _, secret = open_key_admin(config, "t").make(KeyOrder("anna"))
        with serving(config) as gateway:
            assert status(gateway, secret) == 200
            redis.kill()
            time.sleep(1.5)
            assert status(gateway, secret) == 200
        with serving(config) as gateway:
            assert status(gateway, secret) == 401, "a gateway that never read the store knows no key"
            redis.start()
            _, other = open_key_admin(config, "t").make(KeyOrder("bert"))
            within(4.0, lambda: status(gateway, other) == 200)


# ---------------------------------------------------------------- the store


def store_of(place: dict[str, Any]) -> KeyStore:
    access = place["access"]
    return RedisKeys(place["redis"]) if "redis" in place else FileKeys(access.folder / "keys.json")


def admin_of(place: dict[str, Any], clock: Clock = CLOCK) -> KeyAdmin:
    return KeyAdmin(store_of(place), AuditLog(None, clock), "t", clock)


def test_only_digests_are_stored_and_shown_safe10(place: dict[str, Any]) -> None:
    admin = admin_of(place)
    secrets = {admin.make(KeyOrder("anna"))[1] for _ in range(20)}
    assert len(secrets) == 20
    assert all(re.fullmatch(r"sk-toolspeak-[\w-]{43}", secret) for secret in secrets), "256 random bits"
    stored = repr(store_of(place).read())
    assert not any(secret in stored or secret[13:] in stored for secret in secrets)
    assert not any("sha256" in record.public(0) for record in admin.list())


def test_changes_of_many_at_once_are_all_kept_safe10(place: dict[str, Any]) -> None:
    admins = [admin_of(place) for _ in range(4)]
    first, _ = admins[0].make(KeyOrder("anna"))

    def work(admin: KeyAdmin) -> None:
        for _ in range(4):
            admin.make(KeyOrder("anna"))

    threads = [threading.Thread(target=work, args=(admin,)) for admin in admins]
    for thread in threads:
        thread.start()
    admins[0].revoke(first.id)
    for thread in threads:
        thread.join()
    found = admins[0].list()
    assert len(found) == 17
    assert [one.id for one in found if one.revoked is not None] == [first.id]


def test_ended_keys_are_forgotten_after_a_month(place: dict[str, Any]) -> None:
    clock = Dated()
    admin = admin_of(place, clock)
    old, _ = admin.make(KeyOrder("anna", lasts=10))
    clock.now += FORGET
    kept, _ = admin.make(KeyOrder("anna"))
    assert [one.id for one in admin.list()] == [old.id, kept.id]
    clock.now += 100
    admin.revoke(kept.id)
    assert [one.id for one in admin.list()] == [kept.id]


def test_what_cannot_be_done_is_told(place: dict[str, Any]) -> None:
    admin = admin_of(place)
    with pytest.raises(UnknownKey, match="keys list"):
        admin.revoke("k_000000000000")
    with pytest.raises(BadField, match="tenant"):
        admin.make(KeyOrder("no tenant\n"))
    with pytest.raises(BadField, match="concurrent"):
        admin.make(KeyOrder("anna", limits=RateLimits(concurrent=0)))
    made, _ = admin.make(KeyOrder("anna"))
    admin.revoke(made.id)
    with pytest.raises(UnknownKey, match="is revoked"):
        admin.rotate(made.id, 0)


def test_a_damaged_file_is_told_and_keeps_what_is_known(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    config = config_of(towards(upstream), access=Access(KeyPlace.FILE, folder=tmp_path))
    _, secret = open_key_admin(config, "t").make(KeyOrder("anna"))
    file = tmp_path / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with serving(config) as gateway:
        assert status(gateway, secret) == 200
        file.write_bytes(b"[{")
        with pytest.raises(KeysUnavailable, match="not a file of keys"):
            FileKeys(file).read()
        time.sleep(1.3)
        assert status(gateway, secret) == 200
        file.write_bytes(b"[]")
        within(2.5, lambda: status(gateway, secret) == 401)


def test_a_store_in_redis_needs_its_url() -> None:
    with pytest.raises(BadConfig, match=r"access.store: .*TOOLSPEAK_REDIS_URL"):
        open_key_admin(Config(access=Access(KeyPlace.REDIS)), "t")
    with pytest.raises(BadConfig, match=r"under \[access\]"):
        open_key_admin(Config(), "t")


def test_a_refusal_is_written_again_after_a_while(tmp_path: Path) -> None:
    clock = Still()
    audit = AuditLog(tmp_path / "a", clock)
    for step in (0.0, 1.0, 1.0, 9.0):
        clock.now += step
        audit.refused("k_1", "anna", "expired")
    lines = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert [line["times"] for line in lines] == [1, 3]


# ---------------------------------------------------------------- commands and the admin API


def run(folder: Path, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolspeak", "keys", *args]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **environ}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config/toolspeak").mkdir(parents=True)
    (tmp_path / ".config/toolspeak/toolspeak.toml").write_text('[access]\nstore = "file"\n')
    return tmp_path


def test_the_commands_make_list_rotate_and_revoke_safe10(home: Path) -> None:
    limits = ("--requests-per-minute", "60", "--model", "small", "--expires", "90d")
    made = run(home, "make", "anna", *limits)
    assert made.returncode == 0, made.stderr
    secret, id = made.stdout.strip(), re.search(r"k_[0-9a-f]{12}", made.stderr)
    assert id is not None
    listed = run(home, "list")
    assert id[0] in listed.stdout
    assert "60 req/min" in listed.stdout
    assert secret not in listed.stdout
    rotated = json.loads(run(home, "rotate", id[0], "--overlap", "0", "--json").stdout)
    assert (rotated["replaces"], rotated["models"], rotated["requests_per_minute"]) == (id[0], ["small"], 60)
    assert run(home, "revoke", rotated["id"]).returncode == 0
    states = {one["id"]: one["state"] for one in json.loads(run(home, "list", "--json").stdout)["keys"]}
    assert states == {id[0]: "expired", rotated["id"]: "revoked"}
    audit = (home / ".local/state/toolspeak/audit.jsonl").read_text()
    assert [json.loads(line)["event"] for line in audit.splitlines()] == ["made", "rotated", "revoked"]
    assert secret not in audit
    assert '"by":"cli:' in audit


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("revoke", "k_nothing"), "there is no key"),
        (("make", "anna", "--expires", "soon"), "is not a time such as 90d"),
        (("make", "an na"), "is not 1 to 64 letters"),
        (("serve",), "TOOLSPEAK_ADMIN_KEY"),
    ],
)
def test_mistakes_of_commands_are_told(home: Path, args: tuple[str, ...], words: str) -> None:
    failed = run(home, *args)
    assert (failed.returncode, words in failed.stderr) == (2, True), failed.stderr


@contextmanager
def admin_api(home: Path) -> Generator[Callable[..., tuple[int, Any]]]:
    command = [sys.executable, "-m", "toolspeak", "keys", "serve", "--port", "0"]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TOOLSPEAK_ADMIN_KEY": ADMIN_KEY}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found

        def ask(method: str, path: str, body: object = None, sent: str = ADMIN_KEY) -> tuple[int, Any]:
            connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"authorization": f"Bearer {sent}"})
            answer = connection.getresponse()
            try:
                return answer.status, json.loads(answer.read())
            finally:
                connection.close()

        try:
            yield ask
        finally:
            process.terminate()
            process.wait(10)


@pytest.mark.timeout(60)
def test_the_admin_api_makes_lists_rotates_and_revokes_safe10(home: Path, upstream: ScriptedUpstream) -> None:
    state = home / ".local/state/toolspeak"
    config = config_of(towards(upstream), access=Access(KeyPlace.FILE, folder=state))
    with admin_api(home) as ask, serving(config) as gateway:
        code, made = ask("POST", "/keys", {"tenant": "anna", "requests_per_minute": 900, "expires_seconds": 600})
        assert code == 201
        within(2.0, lambda: status(gateway, made["key"]) == 200)
        assert ask("GET", "/keys")[1]["keys"][0]["tenant"] == "anna"
        code, rotated = ask("POST", f"/keys/{made['id']}/rotate", {"overlap_seconds": 0})
        assert (code, rotated["requests_per_minute"]) == (201, 900)
        within(2.0, lambda: (status(gateway, made["key"]), status(gateway, rotated["key"])) == (401, 200))
        assert ask("DELETE", f"/keys/{rotated['id']}")[1]["state"] == "revoked"
        within(2.0, lambda: status(gateway, rotated["key"]) == 401)
        assert {line["by"] for line in audit_of(config) if "by" in line} == {"admin-api"}
        # A key of the gateway is no admin key, and the gateway does not serve the API.
        assert ask("GET", "/keys", sent=made["key"])[0] == 401
        assert ask("GET", "/keys", sent="")[0] == 401
        assert gateway.ask("GET", "/keys", headers={"authorization": f"Bearer {ADMIN_KEY}"}).status == 401


@pytest.mark.timeout(60)
def test_the_admin_api_refuses_what_it_does_not_know_safe10(home: Path) -> None:
    with admin_api(home) as ask:
        assert ask("POST", "/keys", {"tenant": "anna", "admin": True})[0] == 400
        assert ask("POST", "/keys", {"tenant": "anna", "concurrent": 0})[0] == 400
        assert ask("POST", "/keys", {"tenant": "anna", "expires_seconds": -1})[0] == 400
        assert ask("POST", "/keys", b"[" * 1000)[0] == 400
        assert ask("POST", "/keys", b" " * 70_000)[0] == 413
        assert ask("DELETE", "/keys/k_000000000000")[0] == 404
        assert ask("PUT", "/keys")[0] == 404
        assert ask("GET", "/keys")[1] == {"keys": []}


def test_an_address_that_others_reach_is_enough_with_stored_keys_safe6() -> None:
    public = Server(host="192.0.2.1")
    check_public(Config(server=public, access=Access(KeyPlace.FILE)))
    with pytest.raises(BadConfig, match="no key is required"):
        check_public(Config(server=public))

"""The services of deploy/compose.yaml, started as processes with the settings of the file, work together.

No container engine is needed. Commands, variables and the configuration come from the files as they are, so that the
test fails when they no longer fit; only addresses, paths and the password differ.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from testkit.postgres import postgres
from testkit.scripted_upstream import ScriptedUpstream, listening, say
from testkit.vendor_answers import STREAMS, Answer

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
COMPOSE: Final[dict[str, Any]] = msgspec.yaml.decode((DEPLOY / "compose.yaml").read_bytes())
SERVICES: Final[dict[str, Any]] = COMPOSE["services"]
OURS: Final = ("gateway", "worker")
MOUNTED: Final = "/etc/toolspeak/toolspeak.toml"
KEY: Final = "sk-compose"
_VARIABLE: Final = re.compile(r"\$\{(\w+)[^}]*\}")


@dataclass(frozen=True)
class Stack:
    """Addresses of the services that run."""

    gateway: str
    redis_port: int
    upstream: ScriptedUpstream

    def ask(self, path: str, body: object = None) -> Any:  # noqa: ANN401 # JSON
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.gateway + path, data, headers), timeout=20) as answer:
            return json.loads(answer.read())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if is_so():
                return True
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.05)
    return False


@contextmanager
def process(command: list[str], environment: dict[str, str]) -> Generator[None]:
    with subprocess.Popen(command, env=environment) as started:
        try:
            yield
        finally:
            started.terminate()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack]:
    folder = tmp_path_factory.mktemp("compose")
    ports = {"redis": free_port(), "gateway": free_port()}
    with ExitStack() as opened:
        upstream = opened.enter_context(listening())
        database = opened.enter_context(postgres(connections=int(postgres_setting("max_connections"))))
        replaced = {
            "http://host.docker.internal:8080": f"http://127.0.0.1:{upstream.port}",
            "redis://redis:6379": f"redis://127.0.0.1:{ports['redis']}",
        }
        text = (DEPLOY / "toolspeak.toml").read_text(encoding="utf-8")
        for address, local in replaced.items():
            assert text.count(address) == 1, address
            text = text.replace(address, local)
        config = folder / "toolspeak.toml"
        config.write_text(text, encoding="utf-8")
        cache = [
            *SERVICES["redis"]["command"],
            "--bind",
            "127.0.0.1",
            "--port",
            str(ports["redis"]),
            "--dir",
            str(folder),
        ]
        opened.enter_context(process([shutil.which(cache[0]) or cache[0], *cache[1:]], dict(os.environ)))
        for name in OURS:
            local = {MOUNTED: str(config), "0.0.0.0": "127.0.0.1", "4141": str(ports["gateway"])}  # noqa: S104
            command: list[str] = [local.get(str(each), str(each)) for each in SERVICES[name]["command"]]
            given = {**os.environ, **variables(name, database), "XDG_STATE_HOME": str(folder)}
            opened.enter_context(process([sys.executable, "-m", "toolspeak", *command], given))
        yield Stack(f"http://127.0.0.1:{ports['gateway']}", ports["redis"], upstream)


def postgres_setting(name: str) -> str:
    [found] = [each for each in SERVICES["postgres"]["command"] if each.startswith(f"{name}=")]
    return str(found.partition("=")[2])


def variables(name: str, database: str) -> dict[str, str]:
    """Return the variables of a service as compose would set them, with the address of the test's own database."""
    values = {"TOOLSPEAK_KEY": KEY, "POSTGRES_PASSWORD": "secret"}
    said = {
        key: _VARIABLE.sub(lambda found: values[found[1]], text) for key, text in SERVICES[name]["environment"].items()
    }
    owner = SERVICES["postgres"]["environment"]
    expected = f"postgresql://{owner['POSTGRES_USER']}:secret@postgres:5432/{owner['POSTGRES_DB']}"
    assert said["TOOLSPEAK_RUNS_DATABASE"] == expected
    return {**said, "TOOLSPEAK_RUNS_DATABASE": database}


def test_the_gateway_is_ready_and_asks_for_the_key(stack: Stack) -> None:
    assert within(30, lambda: stack.ask("/ready")["status"] == "ready")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{stack.gateway}/v1/models", timeout=10)
    assert stack.ask("/v1/models")["data"]


def test_a_run_begun_at_the_gateway_is_done_by_the_worker(stack: Stack) -> None:
    assert within(30, lambda: stack.ask("/ready")["status"] == "ready")
    stack.upstream.answers(say(STREAMS["openai_chat"](Answer("It is done.")).encode()))
    begun = stack.ask("/v1/runs", {"task": "Say that it is done.", "model": "m", "tools": ["final_output"]})
    assert within(40, lambda: stack.ask(f"/v1/runs/{begun['id']}")["status"] not in ("queued", "running", "live"))
    ended = stack.ask(f"/v1/runs/{begun['id']}")
    assert ended["status"] == "done", ended
    assert "It is done." in json.dumps(ended)


def test_redis_runs_with_the_settings_of_the_file(stack: Stack) -> None:
    assert within(10, lambda: redis_answer(stack.redis_port, "PING") == b"+PONG\r\n")
    assert b"allkeys-lru" in redis_answer(stack.redis_port, "CONFIG GET maxmemory-policy")
    assert b"no" in redis_answer(stack.redis_port, "CONFIG GET appendonly").split()


def redis_answer(port: int, command: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(f"{command}\r\n".encode())
        return connection.recv(4096)


def test_our_services_are_confined_and_mount_the_configuration() -> None:
    for name in OURS:
        service = SERVICES[name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert f"./toolspeak.toml:{MOUNTED}:ro" in service["volumes"]
        assert MOUNTED in service["command"]
        assert "privileged" not in service
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["gateway"]["ports"])
    assert not any("ports" in SERVICES[name] for name in ("redis", "postgres"))

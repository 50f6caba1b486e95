"""A gateway that only writes runs down, PostgreSQL, and real workers that do them (RUN-3, RUN-5, RUN-8)."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.postgres import postgres
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from tests.gateway.test_runs import ANNA, LOOK, WRITE, begin, get, says, until, watched
from toolspeak.config.shape import Durable, Offer, Server

LEASE_S = 2.0


@pytest.fixture(scope="module")
def database() -> Generator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def upstream() -> Generator[ScriptedUpstream]:
    with listening() as upstream:
        yield upstream


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def gateway(upstream: ScriptedUpstream, database: str, folder: Path) -> Generator[Served]:
    config = config_of(
        towards(upstream, retries=0),
        server=Server(keep_alive=0.2),
        keys=(key("anna", "anna"),),
        runs=Durable(database=database, lease=LEASE_S),
        offer=Offer(enabled=True, folders=(str(folder),), live=3, tools=("files",)),
    )
    with serving(config) as served:
        yield served


@contextmanager
def worker(upstream: ScriptedUpstream, database: str, folder: Path) -> Generator["subprocess.Popen[bytes]"]:
    """Start one, as a person would."""
    file = folder.parent / "worker.toml"
    file.write_text(
        f'[server]\nprobe = "off"\n[runs]\nlease = {LEASE_S}\n'
        f'[upstreams.up]\nurl = "http://127.0.0.1:{upstream.port}/v1"\nwire = "openai_chat"\nretries = 0\n'
    )
    command = [sys.executable, "-m", "toolspeak", "worker", "--config", str(file), "--quiet"]
    given = {**os.environ, "TOOLSPEAK_RUNS_DATABASE": database, "XDG_STATE_HOME": str(folder.parent)}
    process = subprocess.Popen(command, env=given)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_run_begun_at_the_gateway_is_done_by_a_worker_run8(
    gateway: Served, upstream: ScriptedUpstream, database: str, folder: Path
) -> None:
    upstream.answers(says(LOOK), says(Answer("It is empty.")))
    id = begin(gateway, folder=str(folder))
    assert not soon(lambda: bool(upstream.asked), 0.5), "the gateway works on it itself"
    with worker(upstream, database, folder):
        events = watched(gateway, id)
    assert [events[0]["kind"], events[-1]["kind"], events[-1]["status"]] == ["turn_began", "run_ended", "done"]
    shown = get(gateway, f"/{id}").json
    assert (shown["status"], shown["text"], shown["rounds"]) == ("done", "It is empty.", 1)


def test_a_word_at_the_gateway_reaches_the_worker_that_took_over_run3_run5(
    gateway: Served, upstream: ScriptedUpstream, database: str, folder: Path
) -> None:
    upstream.answers(says(WRITE), says(Answer("Written.")))
    id = begin(gateway, folder=str(folder))
    with worker(upstream, database, folder) as first:
        asked = until(gateway, id, "call_asked")
        first.kill()
        with worker(upstream, database, folder):
            path = f"/v1/runs/{id}/calls/{asked['id']}/approve"
            assert gateway.post(path, {"allowed": True}, ANNA).status == 200
            assert watched(gateway, id)[-1]["text"] == "Written."
    assert (folder / "a.txt").read_text() == "Hi"
    assert len(upstream.asked) == 2, "a finished turn was asked for again"

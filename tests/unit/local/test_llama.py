"""The embedded server: what runs it, and that it is kept running and never left behind (RUN-6)."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testkit.gguf import write_gguf
from testkit.loopback import in_loop
from toolspeak.errors import BadConfig
from toolspeak.ir.failure import FailureKind
from toolspeak.local import program as programs
from toolspeak.local.program import ServerOptions, ServerProgram, find_server_program, model_file
from toolspeak.local.supervisor import (
    HealthInterval,
    Heartbeat,
    Pace,
    RestartAwareTransport,
    ServerState,
    Supervisor,
    cpu_ticks,
)
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.tether import tethered
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Response, Timeouts, TransportError

FAKE = Path(__file__).with_name("fake_llama.py")
NO_PACKAGE = dict[str, object]().get
LONG = 20.0
"""Seconds after which what must happen will not; the machine may be busy."""
QUICK = Pace(start=LONG, stop=1.0, look=0.02, first_pause=0.05, longest_pause=0.2, steady=60.0, deaths=3)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(port: int, fault: str = "none") -> list[str]:
    return [sys.executable, str(FAKE), "--port", str(port), "--fault", fault]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Tell whether a process is there; one that is dead and not buried is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---------------------------------------------------------------- the model's file


def test_a_model_is_known_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "qwen2.5-coder-1.5b.gguf"
    write_gguf(path, 2_500_000)
    found = model_file(path)
    assert (found.name, found.bulk) == ("qwen2.5-coder-1.5b", "2.5 MB")


@pytest.mark.parametrize(("name", "said"), [("none.gguf", "No such file"), ("", "Is a directory")])
def test_a_file_that_is_not_there_is_said(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        model_file(tmp_path / name)


@pytest.mark.parametrize("begins", [b"", b"GG", b"PK\x03\x04", b"<html>"])
def test_what_is_no_gguf_is_refused(tmp_path: Path, begins: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(begins)
    with pytest.raises(BadConfig, match="a GGUF file with b'GGUF': this is no model"):
        model_file(path)


# ---------------------------------------------------------------- what runs it


def executable(folder: Path, name: str = "llama-server") -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_program_that_is_named_goes_before_the_one_on_the_path(tmp_path: Path) -> None:
    other, named = tmp_path / "bin", executable(tmp_path, "mine")
    other.mkdir()
    executable(other)
    assert find_server_program(named, str(other)) == ServerProgram(named)
    assert find_server_program("", str(other)) == ServerProgram(str(other / "llama-server"))


def test_the_package_is_the_last_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_spec", str)
    assert find_server_program("", "") == ServerProgram("")
    with pytest.raises(BadConfig, match="--n-gpu-layers 9: arguments after -- are for `llama-server`"):
        find_server_program("", "", ("--n-gpu-layers", "9"))


def test_nothing_to_run_it_with_names_both_ways_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_spec", NO_PACKAGE)
    with pytest.raises(BadConfig, match=r"install llama.cpp.*pip install 'toolspeak\[llama\]'"):
        find_server_program("", "")


def test_a_named_program_that_cannot_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "readme").write_text("no program")
    with pytest.raises(BadConfig, match=r"--llama-server: '.*readme' is no program"):
        find_server_program(str(tmp_path / "readme"), "")


def test_the_command_says_everything_and_further_words_last(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    wish = ServerOptions(4142, 4096, 3, ("--flash-attn", "on"))
    words = ServerProgram("/bin/llama-server").command(model_file(path), wish)
    assert words[:5] == ["/bin/llama-server", "--model", str(path), "--alias", "tiny"]
    assert " ".join(words[5:]) == "--host 127.0.0.1 --port 4142 --ctx-size 4096 --threads 3 --jinja --flash-attn on"
    assert "--threads" not in ServerProgram("/bin/llama-server").command(model_file(path), ServerOptions(4142))
    packaged = ServerProgram().command(model_file(path), wish)
    assert packaged[:3] == [sys.executable, "-m", "toolspeak.local.serve"]
    assert packaged[3:] == [str(path), "tiny", "4142", "4096", "3"]


# ---------------------------------------------------------------- the keeper


def test_a_healthy_server_is_up_and_ends_with_its_keeper_run6(free_port: int) -> None:
    with Supervisor(command(free_port), free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        pid = keeper.pid
        assert lives(pid)
    assert keeper.state is ServerState.STOPPED
    assert not lives(pid)


def test_loading_is_seen_while_it_loads(free_port: int) -> None:
    with Supervisor(command(free_port, "slow"), free_port, pace=QUICK) as keeper:
        assert keeper.wait(0.1) is ServerState.LOADING
        assert keeper.wait(LONG) is ServerState.UP


def test_one_that_is_never_healthy_is_given_up(free_port: int) -> None:
    pace = Pace(start=0.8, stop=1.0, look=0.02)
    with Supervisor(command(free_port, "never"), free_port, pace=pace) as keeper:
        assert keeper.wait(LONG) is ServerState.LOST
        assert keeper.why == "the model's server did not start: it was not ready after 0.8 seconds"
        assert keeper.pid == 0


def test_one_that_dies_at_once_is_given_up_with_its_last_words(free_port: int) -> None:
    with Supervisor(command(free_port, "dies"), free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.LOST
        assert keeper.why == "the model's server did not start: it ended with status 3"
        assert keeper.last_lines == ["build: 1", "error: no such tensor\x1b[31m"]


def test_a_program_that_is_not_there_is_given_up(free_port: int) -> None:
    with Supervisor(["/nowhere/llama-server"], free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.LOST
        assert "/nowhere/llama-server: No such file or directory" in [keeper.why, *keeper.last_lines]


def test_one_that_is_killed_is_started_again_run6(free_port: int) -> None:
    with Supervisor(command(free_port), free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        first = keeper.pid
        os.kill(first, signal.SIGKILL)
        until(lambda: keeper.pid not in (0, first) and keeper.state is ServerState.UP)


def test_one_that_dies_again_and_again_is_given_up_and_somebody_is_told(free_port: int) -> None:
    told: list[str] = []
    with Supervisor(command(free_port, "dies-soon"), free_port, told.append, QUICK) as keeper:
        until(lambda: keeper.state is ServerState.LOST)
    assert told == ["the model's server failed 3 times soon after its start: it ended with status 4"]


def test_one_that_ran_long_enough_may_die_as_often_as_it_likes(free_port: int) -> None:
    pace = Pace(look=0.02, first_pause=0.02, steady=0.0, deaths=2)
    seen: set[int] = set()
    with Supervisor(command(free_port, "dies-soon"), free_port, pace=pace) as keeper:

        def often() -> bool:
            seen.add(keeper.pid)
            return len(seen - {0}) > 3

        until(often)
        assert keeper.state is not ServerState.LOST


def test_one_that_ignores_the_request_to_end_is_killed(free_port: int) -> None:
    with Supervisor(command(free_port, "deaf"), free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        pid = keeper.pid
    assert not lives(pid)


def test_a_flood_of_output_neither_stops_it_nor_is_kept(free_port: int) -> None:
    with Supervisor(command(free_port, "flood"), free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        time.sleep(0.5)
        assert keeper._health() == 200
    assert 0 < len(keeper.last_lines) <= 12


def test_what_it_had_started_ends_with_it(free_port: int) -> None:
    with Supervisor(command(free_port, "family"), free_port, pace=QUICK) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
    [line] = [line for line in keeper.last_lines if line.startswith("child")]
    until(lambda: not lives(int(line.split()[1])))


def test_stopping_while_it_loads_ends_it(free_port: int) -> None:
    began = time.monotonic()
    with Supervisor(command(free_port, "never"), free_port, pace=QUICK) as keeper:
        until(lambda: keeper.pid > 0)
        pid = keeper.pid
    assert not lives(pid)
    assert time.monotonic() - began < LONG / 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_the_end_of_the_parent_is_the_end_of_the_child_run6(free_port: int) -> None:
    """The parent is killed, so that it can do nothing about it."""
    code = (
        "import sys, time\nfrom toolspeak.local.supervisor import Supervisor\n"
        f"with Supervisor({command(free_port)}, {free_port}) as keeper:\n"
        " keeper.wait(60)\n print(keeper.pid, flush=True)\n time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert lives(child)
        parent.kill()
    until(lambda: not lives(child))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_child_whose_parent_has_ended_already_does_not_begin() -> None:
    words = tethered(["/bin/echo", "begun"])
    words[4] = "1"
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("", "the parent has ended already\n", 1)


# ---------------------------------------------------------------- the heartbeat

BEATS = HealthInterval(every=0.1, answer=0.4, misses=3)
WATCHED = Pace(
    start=LONG, stop=1.0, look=0.02, first_pause=0.05, longest_pause=0.2, steady=60.0, deaths=3, rhythm=BEATS
)


def test_a_server_stopped_by_a_signal_is_noticed_and_restarted_run6(
    free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped process does not die: its socket stays open, and every request would wait for its own timeout."""
    with Supervisor(command(free_port), free_port, pace=WATCHED) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        first = keeper.pid
        os.kill(first, signal.SIGSTOP)
        until(lambda: keeper.pid not in (0, first) and keeper.state is ServerState.UP)
        assert not lives(first)
        time.sleep(4 * BEATS.every)
        assert keeper.state is ServerState.UP, "the new one is healthy, and stays"
    (line,) = caplog.messages
    assert "it hung: 3 requests to /health in a row got no answer in 0.4 s" in line


def test_a_server_that_hangs_again_and_again_is_given_up_run6(free_port: int) -> None:
    """It accepts connections and never answers, each time soon after its start."""
    told: list[str] = []
    with Supervisor(command(free_port, "mute"), free_port, told.append, WATCHED) as keeper:
        until(lambda: keeper.state is ServerState.LOST)
    (why,) = told
    assert why.startswith("the model's server failed 3 times soon after its start: it hung: 3 requests to /health")


def test_a_server_that_computes_without_an_answer_is_busy_and_not_hung_run6(free_port: int) -> None:
    """llama.cpp's HTTP threads may all hold streams, so that `/health` waits: that is no reason to kill them."""
    rhythm = HealthInterval(every=0.3, answer=0.4, misses=2, busy=3600.0)
    pace = Pace(start=LONG, stop=1.0, look=0.02, rhythm=rhythm)
    with Supervisor(command(free_port, "busy"), free_port, pace=pace) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        first = keeper.pid
        time.sleep(6 * (rhythm.every + rhythm.answer))
        assert (keeper.pid, keeper.state) == (first, ServerState.UP)


def test_a_server_that_computes_for_ever_is_restarted_after_a_longer_time_run6(
    free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    rhythm = HealthInterval(every=0.3, answer=0.4, misses=2, busy=2.0)
    pace = Pace(start=LONG, stop=1.0, look=0.02, first_pause=0.05, rhythm=rhythm)
    with Supervisor(command(free_port, "busy"), free_port, pace=pace) as keeper:
        assert keeper.wait(LONG) is ServerState.UP
        first = keeper.pid
        until(lambda: keeper.pid not in (0, first))
    assert "without any answer" in caplog.messages[0]


def test_bytes_for_a_client_are_a_sign_of_life_run6() -> None:
    """A server on a GPU uses no CPU time while it computes; its streams show that it works."""
    silent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        until(
            lambda: (
                (ticks := cpu_ticks(silent.pid)) is not None and (time.sleep(0.2), cpu_ticks(silent.pid))[1] == ticks
            )
        )
        heartbeat: Heartbeat

        def misses_while_a_byte_comes() -> bool:
            heartbeat.note()
            return False

        heartbeat = Heartbeat(silent.pid, misses_while_a_byte_comes, HealthInterval(misses=1), CLOCK)
        assert heartbeat.beat() == ""
        assert "it hung: 1 request" in Heartbeat(silent.pid, lambda: False, HealthInterval(misses=1), CLOCK).beat()
    finally:
        silent.kill()
        silent.wait()


# ---------------------------------------------------------------- the patient transport


@dataclass
class Whole:
    """An answer of nothing."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    async def read(self) -> bytes:
        return b""

    def close(self) -> None: ...

    def end(self) -> None: ...


class Answers:
    """A transport that counts."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = False

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        del method, url, headers, body, timeouts
        self.sent += 1
        return Whole()

    async def close(self) -> None:
        self.closed = True


def in_state(state: ServerState) -> Supervisor:
    keeper = Supervisor(["never run"], 1)
    keeper.state = state
    return keeper


@in_loop
async def test_a_request_waits_for_a_server_that_is_started_again() -> None:
    keeper, inner = in_state(ServerState.RESTARTING), Answers()
    patient = RestartAwareTransport(inner, keeper, LONG)
    async with asyncio.TaskGroup() as group:
        sent = group.create_task(patient.send("GET", "http://x/", (), b""))
        await asyncio.sleep(0.1)
        assert inner.sent == 0
        keeper.state = ServerState.UP
    reply = await sent
    assert (reply.status, dict(reply.headers), await reply.read()) == (200, {}, b"")
    reply.end()
    reply.close()
    await patient.close()
    assert inner.closed


@in_loop
async def test_a_request_that_waited_long_enough_is_told_when_to_come_again() -> None:
    inner = Answers()
    with pytest.raises(TransportError, match="is restarting: it failed, and is loading again") as broken:
        await RestartAwareTransport(inner, in_state(ServerState.RESTARTING), patience=0.1).send(
            "GET", "http://x/", (), b""
        )
    failure = broken.value.failure
    assert (failure.kind, failure.status, failure.retry_after) == (FailureKind.TRANSIENT, 503, 5.0)
    assert broken.value.connected, "nobody tries it once more in vain"
    assert inner.sent == 0


@pytest.mark.parametrize("state", [ServerState.LOST, ServerState.STOPPED])
def test_nobody_waits_for_a_server_that_does_not_come_back(state: ServerState) -> None:
    with pytest.raises(TransportError, match=f"is {state}"):
        asyncio.run(RestartAwareTransport(Answers(), in_state(state), LONG).send("GET", "http://x/", (), b""))

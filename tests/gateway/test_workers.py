"""`serve --workers N` as processes: a death, a drain, a rolling restart, and what the workers share (OBS-20)."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testkit.grammar import read_stream
from testkit.protocols import answering, question
from testkit.scripted_upstream import Asked, hang, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import soon
from tests.gateway.signalled_process import LONG, PATIENCE, configured, drip, started, streaming
from tests.gateway.test_dashboard import log_in
from tests.gateway.worker_scene import Load, Pool, replaced, working
from toolspeak.config.shape import LogForm
from toolspeak.gateway.worker_output import WorkerOutput
from toolspeak.gateway.worker_pool import usable_cores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests find workers by /proc")
KEYED = '[[keys]]\ntenant = "anna"\nkey = "sk-anna-1234"\n'


def test_a_killed_worker_is_named_and_replaced_while_others_answer_obs20(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        upstream.answers(answering(Answer("Cold.")))
        first, second = pool.workers
        os.kill(first, signal.SIGKILL)
        for _ in range(5):
            assert pool.ask().status == 200
        assert pool.process.says(f"(pid {first}) was ended by SIGKILL: it is started again in 0.5 s")
        assert soon(lambda: len(pool.workers) == 2, PATIENCE)
        assert first not in pool.workers
        new = next(pid for pid in pool.workers if pid != second)
        assert pool.shows("toolspeak_workers", 2)
        with pool.only(new):
            assert pool.ask().status == 200


def test_a_worker_that_hangs_is_killed_and_replaced_obs20(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (
        listening() as upstream,
        working(
            monkeypatch, tmp_path, configured(upstream.port).replace("[server]", "[server]\nworker_timeout = 3.0")
        ) as pool,
    ):
        upstream.answers(answering(Answer("Cold.")))
        hung, other = pool.workers
        os.kill(hung, signal.SIGSTOP)
        assert pool.process.says(f"(pid {hung}) has given no sign of life for 3 s: it is killed")
        assert soon(lambda: hung not in pool.workers and len(pool.workers) == 2, PATIENCE)
        for _ in range(5):
            assert pool.ask().status == 200
        assert other in pool.workers  # one that lives is left alone


def test_the_pause_before_a_new_worker_grows_obs20(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        for pause in ("0.5", "1"):
            os.kill(pool.workers[-1], signal.SIGKILL)
            assert pool.process.says(f"it is started again in {pause} s")
            assert soon(lambda: len(pool.workers) == 2, PATIENCE)
            assert pool.shows("toolspeak_workers", 2)


def test_sigterm_lets_the_streams_of_all_workers_finish_obs11(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        upstream.answers(drip)
        clients: list[tuple[threading.Thread, list[bytes]]] = []
        for count, worker in enumerate(pool.workers, 1):
            with pool.only(worker):
                clients.append(streaming(pool.served, "anthropic"))
                upstream.wait_for(count)
        pool.process.process.send_signal(signal.SIGTERM)
        status, _ = pool.process.end()
        for client, _ in clients:
            client.join(30)
    found = [read_stream("anthropic", bodies[0]) for _, bodies in clients]
    assert [(status, each.text, each.error) for each in found] == [(0, LONG.text, "")] * 2


def test_a_second_ctrl_c_ends_the_streams_of_all_workers_obs11(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        upstream.answers(hang)
        client, bodies = streaming(pool.served, "anthropic")
        upstream.wait_for(1)
        pool.process.process.send_signal(signal.SIGINT)
        assert pool.process.says("1 request is open, waiting up to 60 s; Ctrl-C again ends them")
        pool.process.process.send_signal(signal.SIGINT)
        assert pool.process.end()[0] == 0
        client.join(30)
    assert b"shuts down" in bodies[0]


def test_a_rolling_restart_loses_no_request_and_takes_the_new_configuration_obs10(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = answering(LONG)

    async def mixed(asked: Asked) -> None:
        await (drip if asked.json.get("stream") else answer)(asked)

    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        upstream.answers(mixed)
        load = Load(pool, LONG.text)
        with load.running(streams=3, keep_alives=2):
            for _ in range(2):
                load.waits_for(10)
                old = pool.workers
                pool.process.process.send_signal(signal.SIGHUP)
                assert replaced(pool, old), pool.process.log.read_text()
            load.waits_for(10)
        assert load.failures == []
        old = pool.workers
        pool.process.file.write_text(configured(upstream.port) + KEYED)
        pool.process.process.send_signal(signal.SIGHUP)
        assert replaced(pool, old)
        assert (pool.ask().status, pool.ask(key="sk-anna-1234").status) == (401, 200)


def test_a_broken_file_replaces_no_worker_obs10(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        old, broken = pool.workers, tmp_path / "broken.sqlite"
        pool.process.file.write_text("[server]\nprt = 1\n")
        pool.process.process.send_signal(signal.SIGHUP)
        assert pool.process.says("the configuration was not reloaded")
        assert re.search(r"ERROR .*gateway\.toml:2: server\.prt: is no field here", pool.process.log.read_text())
        broken.write_text("this is no database, however long it is looked at")
        pool.process.file.write_text(f'{configured(upstream.port)}[traces]\ndatabase = "{broken}"\n')
        pool.process.process.send_signal(signal.SIGHUP)
        assert pool.process.says("the old one goes on, and no further worker is replaced")
        assert pool.workers == old
        os.kill(old[0], signal.SIGKILL)  # its successor has the configuration that works
        assert soon(lambda: old[0] not in pool.workers and len(pool.workers) == 2, PATIENCE)
        assert pool.shows("toolspeak_workers", 2)


@pytest.mark.parametrize(
    "text",
    [
        '[server]\nprt = 1\n[upstreams.box]\nurl = "x"\n',
        '[traces]\ndatabase = "FILE"\n[upstreams.box]\nurl = "http://x"\n',
    ],
    ids=["in-the-supervisor", "in-a-worker"],
)
def test_a_bad_configuration_ends_as_it_does_without_workers_obs20(text: str, tmp_path: Path) -> None:
    file, other = tmp_path / "gateway.toml", tmp_path / "other.sqlite"
    other.write_text("this is no database, however long it is looked at")
    file.write_text(text.replace("FILE", str(other)))
    file.chmod(0o600)
    command = [sys.executable, "-m", "toolspeak", "serve", "--config", str(file), "--port", "0", "--workers"]
    ends = [subprocess.run([*command, count], capture_output=True, timeout=60, check=False) for count in "12"]
    assert ends[0].returncode == 2
    assert ends[0].stderr.startswith(b"toolspeak: ")
    assert (ends[1].returncode, ends[1].stderr, ends[1].stdout) == (2, ends[0].stderr, b"")


def test_workers_end_when_their_supervisor_is_killed_obs20(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with listening() as upstream, started(tmp_path, configured(upstream.port), "--workers", "2") as process:
        workers = Pool(process, tmp_path).workers
        process.process.kill()
        assert len(workers) == 2
        assert soon(lambda: not any(_lives(pid) for pid in workers), PATIENCE)


class _KeptConnection:
    """A connection of a load balancer, with one stream after the other."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def begin(self) -> http.client.HTTPResponse:
        """Send a request; return the response, of which the head is there."""
        asked = question("anthropic", stream=True)
        self._connection.request("POST", asked.path, json.dumps(asked.body), {"content-type": "application/json"})
        return self._connection.getresponse()


def _text(response: http.client.HTTPResponse) -> str:
    found = read_stream("anthropic", response.read())
    assert not found.error
    return found.text


def test_a_stream_that_begins_while_its_worker_is_replaced_is_not_cut_obs20(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    brief = configured(0).replace("[server]", "[server]\nshutdown = 3.0")
    with listening() as upstream, working(monkeypatch, tmp_path, brief.replace(":0/", f":{upstream.port}/")) as pool:
        upstream.answers(drip)  # about two seconds: both together last longer than the drain
        kept, old = _KeptConnection(pool.served.port), pool.workers
        first = kept.begin()
        pool.process.process.send_signal(signal.SIGHUP)
        assert _text(first) == LONG.text
        second = kept.begin()
        assert _text(second) == LONG.text
        assert second.headers["connection"] == "close"
        assert replaced(pool, old)


def test_a_worker_without_its_supervisor_answers_on_open_connections_obs20(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with listening() as upstream, started(tmp_path, configured(upstream.port), "--workers", "2") as process:
        upstream.answers(drip)
        workers = Pool(process, tmp_path).workers
        kept = _KeptConnection(process.served.port)
        first = kept.begin()
        process.process.kill()
        assert _text(first) == LONG.text
        second = kept.begin()  # a load balancer sends it before it sees that the connection ends
        assert _text(second) == LONG.text
        assert second.headers["connection"] == "close"
        assert soon(lambda: not any(_lives(pid) for pid in workers), PATIENCE)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ---------------------------------------------------------------- what workers share


def test_metrics_of_any_worker_are_those_of_all_and_never_go_back_obs14(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, seconds = "toolspeak_upstream_requests_total", "toolspeak_turn_duration_seconds_count"
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        upstream.answers(answering(Answer("Cold.")))
        for worker, count in zip(pool.workers, (3, 4), strict=True):
            with pool.only(worker):
                for _ in range(count):
                    assert pool.ask().status == 200
        assert pool.shows(name, 7)
        for worker in pool.workers:
            with pool.only(worker):
                assert pool.shows(name, 7)
                assert pool.figure(seconds) == 7
        os.kill(pool.workers[0], signal.SIGKILL)
        assert (pool.figure(name), pool.figure(seconds)) == (7, 7)
        old = pool.workers
        pool.process.process.send_signal(signal.SIGHUP)
        assert soon(lambda: not set(old) & set(pool.workers), PATIENCE)
        assert (pool.figure(name), pool.figure(seconds)) == (7, 7)
        assert pool.shows("toolspeak_workers", 2)
        assert pool.figure("toolspeak_info") == 1


def test_the_rate_of_a_key_holds_over_all_workers_obs20(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keyed = f"{KEYED}requests_per_minute = 6\n"
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port) + keyed) as pool:
        upstream.answers(answering(Answer("Cold.")))
        found: list[int] = []
        for _ in range(5):
            for worker in pool.workers:
                with pool.only(worker):
                    found.append(pool.ask(key="sk-anna-1234").status)
    # One comes back every ten seconds, and the machine may be slow: with a count for each worker none is refused.
    assert found[:6] == [200] * 6
    assert 429 in found


def test_the_open_requests_of_a_key_are_counted_over_all_workers_obs20(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keyed, key = f"{KEYED}concurrent = 2\n", {"authorization": "Bearer sk-anna-1234"}
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port) + keyed) as pool:
        upstream.answers(hang)
        opened: list[http.client.HTTPConnection] = []
        asked = question("openai_chat")
        for count, worker in enumerate(pool.workers, 1):
            with pool.only(worker):
                opened.append(http.client.HTTPConnection("127.0.0.1", pool.served.port, timeout=60))
                opened[-1].request("POST", asked.path, json.dumps(asked.body), key)
                upstream.wait_for(count)
        for worker in pool.workers:
            with pool.only(worker):
                reply = pool.ask(key="sk-anna-1234")
                assert (reply.status, b"keys.concurrent" in reply.body) == (429, True)
        upstream.answers(answering(Answer("Cold.")))
        os.kill(pool.workers[0], signal.SIGKILL)  # its request is open no longer, although it could not say so
        assert soon(lambda: pool.ask(key="sk-anna-1234").status == 200, PATIENCE)
        for connection in opened:
            connection.close()


def test_responses_sessions_and_traces_are_known_to_all_workers_wire8(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port) + KEYED) as pool:
        upstream.answers(answering(Answer("Cold.")))
        first, second = pool.workers
        with pool.only(first):
            answered = pool.ask("openai_responses", "sk-anna-1234", store=True)
            cookie = log_in(pool.served, "sk-anna-1234")
        with pool.only(second):
            again = pool.ask("openai_responses", "sk-anna-1234", previous_response_id=answered.json["id"])
            page = pool.served.ask("GET", "/ui", headers=cookie)
            path, key = f"/traces/{answered.headers['x-toolspeak-trace']}", {"x-api-key": "sk-anna-1234"}
            assert pool.served.ask("GET", path, headers=key).status == 404  # the one that knows it is suspended
        assert soon(lambda: pool.served.ask("GET", path, headers=key).status == 200, PATIENCE)
        assert (answered.status, again.status, page.status) == (200, 200, 200)


def test_traces_of_all_workers_are_listed_live_and_outlive_a_rolling_restart_obs20(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port)) as pool:
        upstream.answers(answering(Answer("Cold.")))
        first, second = pool.workers
        page = http.client.HTTPConnection("127.0.0.1", pool.served.port, timeout=60)
        with pool.only(first):
            page.request("GET", "/ui/events")
            rows = page.getresponse()
            assert rows.readline() == b"retry: 1000\n"
        with pool.only(second):
            trace = pool.ask().headers["x-toolspeak-trace"]
        assert any(trace.encode() in line for line in iter(rows.readline, b""))
        page.close()

        upstream.answers(hang)
        with pool.only(second):
            client, _ = streaming(pool.served, "openai_chat")
            upstream.wait_for(1)
        with pool.only(first):
            assert pool.served.ask("GET", "/traces").json["running"] == []
        for _ in range(4):
            assert len(pool.served.ask("GET", "/traces").json["running"]) == 1
        assert [one["id"] for one in pool.served.ask("GET", "/traces").json["traces"]] == [trace]

        pool.process.process.send_signal(signal.SIGHUP)
        assert soon(lambda: first not in pool.workers, PATIENCE)
        assert pool.process.says("1 request is open, waiting up to 60 s")
        assert len(pool.served.ask("GET", "/traces").json["running"]) == 1  # of the old worker, which drains
        os.kill(second, signal.SIGINT)
        assert soon(lambda: second not in pool.workers, PATIENCE)
        client.join(30)
        listed = pool.served.ask("GET", "/traces").json["traces"]
        assert [one["id"] for one in listed][1:] == [trace]
        assert pool.served.ask("GET", f"/traces/{trace}").json["id"] == trace


@pytest.mark.parametrize("form", ["text", "json"])
def test_each_line_of_the_log_is_whole_and_names_its_worker_obs6(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str
) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, configured(upstream.port), "--log", form) as pool:
        upstream.answers(answering(Answer("Cold.")))
        for worker in pool.workers:
            with pool.only(worker):
                for _ in range(10):
                    assert pool.ask(model="box:" + "m" * 300).status == 200
        log = pool.process.log
        assert soon(lambda: log.read_text().count("/v1/c") >= 20, PATIENCE)
        lines = [line for line in log.read_text().splitlines() if "/v1/c" in line]
    if form == "json":
        entries = [json.loads(line) for line in lines]
        assert {(entry["worker"], entry["event"]) for entry in entries} == {(1, "request"), (2, "request")}
    else:
        assert all(re.fullmatch(r"\[[12]\] \d\d:\d\d:\d\d 200 /v1/c.* s [0-9a-f]{8}", line) for line in lines)
        assert max(map(len, lines)) == 120
        assert {line[:3] for line in lines} == {"[1]", "[2]"}
    assert len(lines) == 20


def test_long_lines_of_two_workers_do_not_mix_obs20(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A traceback is longer than what a pipe keeps together."""
    outputs: list[WorkerOutput] = []
    writers: list[threading.Thread] = []
    for number in (1, 2):
        reading, writing = os.pipe()
        outputs.append(WorkerOutput(reading, number, LogForm.TEXT))
        line = str(number).encode() * 30_000 + b"\n"
        writers.append(threading.Thread(target=_write_and_close, args=(writing, line * 20)))
        writers[-1].start()
    is_open = {1: True, 2: True}
    while any(is_open.values()):
        for number, output in enumerate(outputs, 1):
            is_open[number] = is_open[number] and output.relay()
    for output in outputs:
        output.finish()
    for writer in writers:
        writer.join()
    lines = capfdbinary.readouterr().err.splitlines()
    assert sorted(lines) == [b"[1] " + b"1" * 30_000] * 20 + [b"[2] " + b"2" * 30_000] * 20


def _write_and_close(pipe: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left[:5000]) :]
    os.close(pipe)


def test_auto_is_no_more_than_the_cores_that_the_process_may_use() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))

"""What a person does to a running gateway: reload its configuration, and end it once or twice (OBS-10, OBS-11)."""

import json
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from testkit.grammar import read_stream
from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import hang, listening
from testkit.vendor_answers import Answer
from tests.gateway.signalled_process import LONG, begin, configured, drip, started, streaming


@pytest.mark.parametrize("wire", WIRES)
def test_ctrl_c_counts_down_and_a_second_one_ends_streams_in_order_obs11(wire: str, tmp_path: Path) -> None:
    """The first was silent for up to 60 s; the second printed two tracebacks and `Unclosed client session`."""
    with listening() as upstream, started(tmp_path, configured(upstream.port), "--quiet") as gateway:
        upstream.answers(begin)
        client, bodies = streaming(gateway.served, wire)
        upstream.wait_for(1)
        time.sleep(0.3)
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.says("1 request is open, waiting up to 60 s; Ctrl-C again ends them")
        assert gateway.process.poll() is None
        gateway.process.send_signal(signal.SIGINT)
        status, log = gateway.end()
        client.join(10)
    assert status == 0
    assert "Traceback" not in log
    assert "Unclosed" not in log
    assert "1 request is ended before the answer was complete" in log
    assert "shuts down" in read_stream(wire, bodies[0]).error


def test_ctrl_c_once_lets_streams_finish_obs11(tmp_path: Path) -> None:
    with listening() as upstream, started(tmp_path, configured(upstream.port)) as gateway:
        upstream.answers(drip)
        client, bodies = streaming(gateway.served, "anthropic")
        upstream.wait_for(1)
        gateway.process.send_signal(signal.SIGINT)
        status, log = gateway.end()
        client.join(10)
    assert (status, "Traceback" in log, "Unclosed" in log) == (0, False, False)
    found = read_stream("anthropic", bodies[0])
    assert (found.text, found.error) == (LONG.text, "")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_before_it_drains_it_is_not_ready_and_still_answers_obs11(workers: str, tmp_path: Path) -> None:
    """A load balancer that has not noticed yet sent clients to a closed port."""
    with (
        listening() as upstream,
        started(
            tmp_path,
            configured(upstream.port).replace("[server]", "[server]\ndrain_delay = 4.0"),
            *("--workers", workers),
        ) as gateway,
    ):
        upstream.answers(answering(Answer("Cold.")))
        asked = question("openai_chat")
        assert gateway.served.ask("GET", "/ready").status == 200
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.says("/ready answers 503, and connections are accepted for 4 s more")
        ready = gateway.served.ask("GET", "/ready")
        assert (ready.status, ready.json["status"]) == (503, "draining")
        assert gateway.served.ask("GET", "/live").status == 200
        assert gateway.served.post(asked.path, asked.body).status == 200
        status, log = gateway.end()
    assert (status, "Traceback" in log) == (0, False)


def test_ctrl_c_does_not_wait_for_load_balancers_obs11(tmp_path: Path) -> None:
    with started(tmp_path, configured(9).replace("[server]", "[server]\ndrain_delay = 600.0")) as gateway:
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.end()[0] == 0


def test_quiet_keeps_errors_obs6(tmp_path: Path) -> None:
    """A stream that broke off was a success in the log, and nothing with `--quiet`."""
    with started(tmp_path, configured(9), "--quiet") as gateway:
        asked = question("openai_chat")
        assert gateway.served.post(asked.path, asked.body).status == 502
        assert gateway.says(" ERROR 502 /v1/c")
        assert gateway.says("WARNING upstream box does not answer: no connection to the upstream at 127.0.0.1:9")
        assert gateway.served.ask("GET", "/health").status == 200
        assert not any(" 200 " in line for line in gateway.log.read_text().splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_hup_reloads_keys_models_and_upstreams_and_drops_nothing_obs10(tmp_path: Path) -> None:
    """It ended the gateway without a line."""
    keyed = '[[keys]]\ntenant = "anna"\nkey = "sk-anna-1234"\n'
    with listening() as one, listening() as two, started(tmp_path, configured(one.port)) as gateway:
        one.answers(drip)
        two.answers(answering(Answer("Other.")))
        client, bodies = streaming(gateway.served, "anthropic")
        one.wait_for(1)
        text = configured(two.port, 'unknown_models = "strict"') + '[models.fast]\nmodel = "m"\n' + keyed
        gateway.file.write_text(text)
        gateway.process.send_signal(signal.SIGHUP)
        assert gateway.says("the configuration was reloaded: 1 upstreams, 1 models, 1 keys")
        asked = question("openai_chat", model="fast")
        assert gateway.served.post(asked.path, asked.body).status == 401
        known = {"x-api-key": "sk-anna-1234"}
        assert "Other." in gateway.served.post(asked.path, asked.body, known).body.decode()
        unknown = question("openai_chat", model="gpt-5.5")
        assert gateway.served.post(unknown.path, unknown.body, known).status == 404
        client.join(10)
        assert read_stream("anthropic", bodies[0]).text == LONG.text
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.end()[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_a_broken_file_is_named_and_the_old_one_stays_obs10(tmp_path: Path) -> None:
    with listening() as upstream, started(tmp_path, configured(upstream.port)) as gateway:
        upstream.answers(answering(Answer("Still here.")))
        gateway.file.write_text('[server]\nprt = 1\nkeep_alive = "x"\n')
        gateway.process.send_signal(signal.SIGHUP)
        assert gateway.says("the configuration was not reloaded")
        log = gateway.log.read_text()
        assert re.search(r"ERROR .*gateway\.toml:2: server\.prt: is no field here; did you mean 'port'\?", log)
        assert re.search(r"ERROR .*gateway\.toml:3: server\.keep_alive: ", log)
        asked = question("openai_chat")
        assert "Still here." in gateway.served.post(asked.path, asked.body).body.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_what_needs_a_restart_is_named_obs10(tmp_path: Path) -> None:
    with listening() as upstream, started(tmp_path, configured(upstream.port)) as gateway:
        gateway.file.write_text(configured(upstream.port) + "[responses]\nentries = 3\n[limits]\nconnections = 9\n")
        gateway.process.send_signal(signal.SIGHUP)
        assert gateway.says("the configuration was reloaded")
        log = gateway.log.read_text()
        assert "limits.connections has changed: it takes effect after a restart" in log
        assert "[responses] has changed: it takes effect after a restart" in log


def test_a_slow_turn_and_a_json_log_as_a_person_starts_them_obs6(tmp_path: Path) -> None:
    """`--log json` writes one object on each line; a request that hangs is ended by the second Ctrl-C, and told."""
    with listening() as upstream, started(tmp_path, configured(upstream.port), "--log", "json") as gateway:
        upstream.answers(hang)
        client, _ = streaming(gateway.served, "openai_chat")
        upstream.wait_for(1)
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.says("Ctrl-C again ends them")
        gateway.process.send_signal(signal.SIGINT)
        status, log = gateway.end()
        client.join(10)
    assert status == 0
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (request,) = [line for line in lines if line["event"] == "request"]
    assert (request["fault"], request["status"], request["upstream"]) == ("shutdown", 503, "box")

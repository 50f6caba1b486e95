"""A gateway that reads its configuration again when the file changes (OPS-1)."""

import logging
import os
import time
from pathlib import Path

import pytest

from testkit.grammar import read_stream
from testkit.protocols import answering, question
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.gateway.signalled_process import LONG, configured, drip, started, streaming
from tests.gateway.worker_scene import working
from toolspeak.gateway.file_watch import FileWatch

RELOADED = "the configuration was reloaded"


def watching(port: int, more: str = "") -> str:
    return configured(port, more).replace("[server]", "[server]\nreload_on_change = true")


def test_a_change_counts_once_and_when_the_file_is_stable_ops1(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("a")
    watch = FileWatch([file])
    assert not watch.look()
    file.write_text("half of ")
    assert not watch.look()
    file.write_text("half of it, and the rest")
    assert not watch.look()
    assert watch.look()
    assert not watch.look()


def test_the_same_content_is_no_change_ops1(tmp_path: Path) -> None:
    file, other = tmp_path / "a.toml", tmp_path / "b.toml"
    for each in (file, other):
        each.write_text("a")
    watch = FileWatch([file])
    os.utime(file, (1, 1))
    assert [watch.look(), watch.look()] == [False, False]
    other.rename(file)
    assert [watch.look(), watch.look()] == [False, False]


def test_content_of_the_same_size_and_time_is_a_change_ops1(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("port = 1")
    os.utime(file, (1, 1))
    watch = FileWatch([file])
    file.write_text("port = 2")
    os.utime(file, (1, 1))
    assert [watch.look(), watch.look()] == [False, True]


def test_a_missing_file_is_told_once_and_counts_when_it_is_back_ops1(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.toml"
    file.write_text("a")
    watch = FileWatch([file])
    file.unlink()
    with caplog.at_level(logging.WARNING):
        assert [watch.look() for _ in range(4)] == [False] * 4
    assert [each.getMessage() for each in caplog.records] == [
        f"{file} cannot be read: the gateway goes on with what it had. Put the file back"
    ]
    file.write_text("b")
    assert [watch.look(), watch.look()] == [False, True]


def config_map(folder: Path, version: int, text: str) -> None:
    """Swap what `..data` links to, as the kubelet does with a ConfigMap."""
    data = folder / f"..{version}"
    data.mkdir()
    (data / "gateway.toml").write_text(text)
    (folder / "..new").symlink_to(data.name)
    (folder / "..new").rename(folder / "..data")


def test_a_config_map_is_taken_while_a_stream_goes_on_ops1(tmp_path: Path) -> None:
    with listening() as one, listening() as two:
        one.answers(drip)
        two.answers(answering(Answer("Other.")))
        config_map(tmp_path, 1, watching(one.port))
        (tmp_path / "gateway.toml").symlink_to("..data/gateway.toml")
        with started(tmp_path, watching(one.port)) as gateway:
            client, bodies = streaming(gateway.served, "anthropic")
            one.wait_for(1)
            config_map(tmp_path, 2, watching(two.port))
            assert gateway.says(RELOADED)
            asked = question("openai_chat")
            assert "Other." in gateway.served.post(asked.path, asked.body).body.decode()
            client.join(10)
            assert read_stream("anthropic", bodies[0]).text == LONG.text
            time.sleep(2.2)
            assert gateway.log.read_text().count(RELOADED) == 1


def test_mistakes_are_named_once_and_the_next_version_is_taken_ops1(tmp_path: Path) -> None:
    with listening() as upstream, started(tmp_path, watching(upstream.port)) as gateway:
        upstream.answers(answering(Answer("Still here.")))
        gateway.file.write_text(watching(upstream.port) + "nonsense = 1\n")
        assert gateway.says("the configuration was not reloaded")
        asked = question("openai_chat")
        assert "Still here." in gateway.served.post(asked.path, asked.body).body.decode()
        time.sleep(2.2)
        assert gateway.log.read_text().count("the configuration was not reloaded") == 1
        gateway.file.write_text(watching(upstream.port) + "retries = 1\n")
        assert gateway.says(RELOADED)


def test_without_the_setting_only_sighup_reads_the_file_ops1(tmp_path: Path) -> None:
    with listening() as upstream, started(tmp_path, configured(upstream.port)) as gateway:
        gateway.file.write_text(configured(upstream.port) + "retries = 1\n")
        time.sleep(3.2)
        assert RELOADED not in gateway.log.read_text()


def test_the_supervisor_of_workers_watches_ops1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with listening() as upstream, working(monkeypatch, tmp_path, watching(upstream.port)) as pool:
        upstream.answers(answering(Answer("Cold.")))
        old = set(pool.workers)
        pool.process.file.write_text(watching(upstream.port) + '[[keys]]\ntenant = "anna"\nkey = "sk-anna-1234"\n')
        assert pool.process.says(RELOADED)
        deadline = time.monotonic() + 20
        while old & set(pool.workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not old & set(pool.workers)
        assert pool.ask().status == 401
        assert pool.ask(key="sk-anna-1234").status == 200
        assert pool.process.log.read_text().count(RELOADED) == 1

"""`toolspeak up` with several models, names of stores and the hub: found, weighed, loaded on demand (UP-1 to UP-6)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from testkit.gguf import gguf_head, write_gguf
from testkit.hub import FakeHub
from tests.unit.cli.test_up import FAKE, children, eventually, lives, status_of
from toolspeak.local import memory

OPENER = build_opener(ProxyHandler({}))
LONG = 30.0
STATES = ("a", "b", "c")
PROBED_S = 3.0
"""Seconds after which a probe has sent its first question."""


@pytest.fixture
def binary(tmp_path: Path) -> str:
    path = tmp_path / "llama-server"
    path.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home of its own: the stores of this machine are not its subject."""
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "home"


def no_gpu(arguments: Sequence[str]) -> bool:
    del arguments
    return False


def files(folder: Path) -> list[str]:
    return [str(write_gguf(folder / f"{name}.gguf")) for name in STATES]


@contextmanager
def upped(binary: str, *args: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    command = [sys.executable, "-m", "toolspeak", "up", "--llama-server", binary, "--port", "0", *args]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            line = ""
            while not line.startswith("toolspeak listens on "):
                line = process.stderr.readline()
                assert line, "it has ended"
            yield process, line.split()[-1]
        finally:
            process.kill()


def asked(url: str, model: str, says: str = "Who are you?", **more: object) -> int:
    """Ask a model, and return the process that answers: the false server says its own process id."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": says}], **more}).encode()
    with OPENER.open(
        Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"}), timeout=LONG
    ) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return int(found["choices"][0]["message"]["content"].split()[-1])


def states(url: str) -> dict[str, str]:
    with OPENER.open(f"{url}/v1/models", timeout=LONG) as answer:
        return {each["id"]: each["toolspeak"]["state"] for each in json.loads(answer.read())["data"]}


def test_each_model_is_loaded_when_it_is_asked_for_and_one_at_a_time_up3(tmp_path: Path, binary: str) -> None:
    with upped(binary, *files(tmp_path)) as (process, url):
        assert states(url) == dict.fromkeys(STATES, "unloaded")
        assert children(process.pid) == [], "a GET loads nothing (UP-5)"
        first = asked(url, "a")
        assert states(url) == {"a": "loaded", "b": "unloaded", "c": "unloaded"}
        assert asked(url, "a") == first
        second = asked(url, "b")
        assert not lives(first)
        assert children(process.pid) == [second]
        assert states(url)["b"] == "loaded"
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0
    assert not lives(second)


def test_as_many_as_are_allowed_stay_loaded_up3(tmp_path: Path, binary: str) -> None:
    with upped(binary, *files(tmp_path), "--loaded", "2") as (process, url):
        a, b = asked(url, "a"), asked(url, "b")
        assert sorted(children(process.pid)) == sorted([a, b])
        assert asked(url, "a") == a
        c = asked(url, "c")
        assert sorted(children(process.pid)) == sorted([a, c]), "b was not used for longest"


def test_an_open_answer_finishes_before_its_model_is_unloaded_up4(tmp_path: Path, binary: str) -> None:
    paths = files(tmp_path)
    with upped(binary, *paths) as (_, url), ThreadPoolExecutor(3) as pool:
        first = asked(url, "a")
        slow = pool.submit(asked, url, "a", "SLOWLY")
        eventually(Path(f"{paths[0]}.slowly").exists)
        other = pool.submit(asked, url, "b")
        eventually(lambda: states(url)["b"] == "unloaded" and not other.done())
        late = pool.submit(asked, url, "a")
        Path(f"{paths[0]}.go").touch()
        assert slow.result(LONG) == first
        assert other.result(LONG) != first
        assert late.result(LONG) != first, "it waited behind the other model: none starves"


def test_an_idle_model_is_unloaded_up5(tmp_path: Path, binary: str) -> None:
    with upped(binary, files(tmp_path)[0], "--idle", "0.3") as (_, url):
        first = asked(url, "a")
        eventually(lambda: not lives(first))
        eventually(lambda: states(url) == {"a": "unloaded"})
        assert asked(url, "a") != first


def test_a_probe_does_not_load_a_model_again_up5(tmp_path: Path, binary: str) -> None:
    """The probe of a model waits for a second without requests, and the model is unloaded by then."""
    tool: dict[str, object] = {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
    }
    with upped(binary, files(tmp_path)[0], "--idle", "0.2", "--probe", "full") as (process, url):
        first = asked(url, "a", tools=[tool])
        eventually(lambda: not children(process.pid))
        assert not lives(first)
        until = time.monotonic() + PROBED_S
        while time.monotonic() < until:
            assert children(process.pid) == []
            time.sleep(0.05)


def test_a_model_that_does_not_start_tells_its_clients_and_blocks_no_other_up6(tmp_path: Path, binary: str) -> None:
    config = tmp_path / "toolspeak.toml"
    paths = files(tmp_path)
    broken = f'[up.models.broken]\nmodel = "{paths[1]}"\nargs = ["--fault", "dies"]\n'
    config.write_text(f'[up.models.works]\nmodel = "{paths[0]}"\n{broken}')
    with upped(binary, "--config", str(config)) as (process, url):
        first = asked(url, "works")
        with pytest.raises(HTTPError) as failed:
            asked(url, "broken")
        with failed.value as told:
            assert (told.code, told.headers["retry-after"]) == (503, "5")
            said = json.loads(told.read())["error"]["message"]
        assert "the model broken cannot be loaded: the model's server did not start: it ended with status 3" in said
        assert "no such tensor" in said
        assert states(url)["broken"] == "failed"
        second = asked(url, "works")
        assert children(process.pid) == [second]
        assert second != first
        with pytest.raises(HTTPError) as again:
            asked(url, "broken")
        again.value.close()
        assert asked(url, "works") == second, "it was not unloaded for one that failed just now"


def test_one_that_crashes_is_restarted_as_a_single_one_is_up6(tmp_path: Path, binary: str) -> None:
    with upped(binary, *files(tmp_path)) as (_, url):
        first = asked(url, "b")
        os.kill(first, signal.SIGKILL)
        assert asked(url, "b") != first


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_nothing_is_left_when_it_is_killed_while_it_switches_up6(tmp_path: Path, binary: str) -> None:
    with upped(binary, *files(tmp_path), "--loaded", "2") as (process, url), ThreadPoolExecutor(2) as pool:
        asked(url, "a")
        asked(url, "b")
        waits = pool.submit(asked, url, "c")
        eventually(lambda: states(url)["c"] != "unloaded")
        found = children(process.pid)
        process.kill()
        process.wait(LONG)
        assert isinstance(waits.exception(LONG), OSError)
    assert found
    eventually(lambda: not any(lives(child) for child in found))


def test_a_signal_while_one_loads_ends_all_of_it(tmp_path: Path, binary: str) -> None:
    paths, config = files(tmp_path), tmp_path / "toolspeak.toml"
    config.write_text("[server]\nshutdown = 1\n")
    with (
        upped(binary, *paths[:2], "--config", str(config), "--", "--fault", "never") as (process, url),
        ThreadPoolExecutor(1) as pool,
    ):
        waits = pool.submit(asked, url, "a")
        eventually(lambda: bool(children(process.pid)))
        [child] = children(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0
        assert isinstance(waits.exception(LONG), OSError)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    eventually(lambda: not lives(child))


# ---------------------------------------------------------------- names, the hub, the list


def test_a_model_of_ollama_runs_without_ollama_up1(home: Path, binary: str) -> None:
    store = home / ".ollama/models"
    manifest = store / "manifests/registry.ollama.ai/library/tiny-coder/1b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "a" * 64}
    manifest.write_text(json.dumps({"layers": [layer]}))
    write_gguf(store / "blobs" / ("sha256-" + "a" * 64))
    with upped(binary, "tiny-coder:1b") as (_, url), OPENER.open(f"{url}/v1/models", timeout=LONG) as answer:
        assert [each["id"] for each in json.loads(answer.read())["data"]] == ["tiny-coder:1b"]


def test_a_model_of_the_hub_is_fetched_and_runs_up1(
    tmp_path: Path, binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeHub({"org/tiny": {"tiny-Q4_K_M.gguf": gguf_head().ljust(3000, b"x")}}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with upped(binary, "hf:org/tiny") as (_, url):
            asked(url, "tiny-Q4_K_M")
        assert (tmp_path / "cache/toolspeak/models/hf/org/tiny/tiny-Q4_K_M.gguf").stat().st_size == 3000
    with upped(binary, "hf:org/tiny:Q4_K_M") as (_, url):
        asked(url, "tiny-Q4_K_M")


def test_without_a_model_those_of_this_machine_are_listed_with_what_to_type_up1(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of() == 0
    assert "toolspeak up hf:Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF" in capsys.readouterr().out
    write_gguf(home / ".lmstudio/models/org/Tiny-GGUF/Tiny-Q8_0.gguf")
    assert status_of() == 0
    assert capsys.readouterr().out.splitlines() == [
        "org/Tiny-GGUF      2 kB  LM Studio",
        "Run one:          toolspeak up org/Tiny-GGUF",
        "Or fetch one:     toolspeak up hf:ORG/REPO",
    ]


def test_a_missing_extra_is_one_line_up1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert status_of("hf:org/tiny") == 2
    said = capsys.readouterr().err
    assert said.endswith("pip install 'toolspeak[hub]'\n")
    assert said.count("\n") == 1


def test_two_models_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(write_gguf(tmp_path / folder / "m.gguf")) for folder in ("x", "y")]
    assert status_of(*paths) == 2
    assert (
        "another model is called 'm' too. Give each of them its own name: [up.models.NAME]" in capsys.readouterr().err
    )


# ---------------------------------------------------------------- memory


def test_a_model_that_does_not_fit_is_refused_with_what_would_up2(
    tmp_path: Path, binary: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files(tmp_path)[0]
    monkeypatch.setattr(memory, "has_gpu", no_gpu)
    monkeypatch.setattr(memory, "free_memory", lambda: 4_000_000)
    assert status_of(path, "--llama-server", binary, "--port", "0") == 2
    need, refused = capsys.readouterr().err.splitlines()
    assert need == "a needs about 9.44 MB of memory with 32768 tokens of context; 4 MB are free"
    assert refused == (
        "toolspeak: a: about 9.44 MB of memory are needed, and 4 MB are free. --context 11264 would fit. "
        "--force loads it anyway."
    )
    monkeypatch.setattr(memory, "free_memory", lambda: 1_000)
    assert status_of(path, "--llama-server", binary, "--port", "0") == 2
    assert "Take a smaller quantisation of it (such as Q4_K_M), or a smaller model." in capsys.readouterr().err
    assert (
        status_of(path, path.replace("a.gguf", "b.gguf"), "--loaded", "2", "--llama-server", binary, "--port", "0") == 2
    )
    assert "a and b: about 18.9 MB of memory are needed, and 1 kB are free. Pass --loaded 1" in capsys.readouterr().err


def test_force_and_a_gpu_turn_the_refusal_into_a_warning_up2(
    tmp_path: Path, binary: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files(tmp_path)[0]
    monkeypatch.setattr(memory, "free_memory", lambda: 1_000)
    for more in (["--force", "--", "--fault", "dies"], ["--", "--fault", "dies", "-ngl", "99"]):
        assert status_of(path, "--llama-server", binary, "--port", "0", *more) == 2
        said = capsys.readouterr().err
        assert "toolspeak: warning: a: about 9.44 MB of memory are needed" in said
        assert "the model's server did not start" in said


def test_a_damaged_file_is_one_line_up2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(gguf_head()[:40])
    assert status_of(str(path)) == 2
    said = capsys.readouterr().err
    assert "its head cannot be read: the file ends in it. The file is damaged or not whole: fetch it again." in said
    assert said.count("\n") == 1

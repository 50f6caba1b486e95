"""Models from a hub: chosen, fetched, continued after an interruption, checked; each error says what to type (UP-1)."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from testkit.gguf import gguf_head
from testkit.hub import FakeHub
from toolspeak.errors import BadConfig
from toolspeak.local import hub as hubs
from toolspeak.local.hub import HubName, parse_name

SMALL = gguf_head().ljust(30_000, b"s")
LARGE = gguf_head().ljust(200_000, b"l")
FIRST, SECOND = gguf_head().ljust(9_000, b"1"), gguf_head().ljust(9_000, b"2")
REPO = "org/tiny-GGUF"
FILES = {
    "README.md": b"# Tiny",
    "tiny-Q4_K_M.gguf": SMALL,
    "tiny-Q8_0.gguf": LARGE,
    "mmproj-tiny-F16.gguf": b"GGUF",
    "F16/tiny-F16-00001-of-00002.gguf": FIRST,
    "F16/tiny-F16-00002-of-00002.gguf": SECOND,
    "BF16/tiny-BF16-00001-of-00002.gguf": FIRST,
}
FETCH = """
import sys
from pathlib import Path
from toolspeak.errors import BadConfig
from toolspeak.local.hub import fetch, parse_name
def report(activity, done, total):
    print(activity, done, total, flush=True)
try:
    print("at", fetch(parse_name(sys.argv[1]), Path(sys.argv[2]), report))
except BadConfig as error:
    sys.exit(str(error))
"""


@pytest.fixture
def hub() -> Generator[FakeHub]:
    with FakeHub({REPO: FILES, "org/plain": {"model.safetensors": b"x"}}) as served:
        yield served


def fetched(hub: FakeHub, folder: Path, name: str = f"hf:{REPO}", **more: str) -> subprocess.CompletedProcess[str]:
    """Fetch in a process of its own: the package reads the environment when it is imported."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environ |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), **more}
    command = [sys.executable, "-c", FETCH, name, str(folder)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=50, check=False)


def silent(activity: str, done: int, total: int) -> None:
    del activity, done, total


def part(folder: Path) -> Path:
    [found] = (folder / REPO).glob("*.part")
    return found


def test_the_usual_quantisation_is_fetched_with_progress_and_checked(hub: FakeHub, tmp_path: Path) -> None:
    done = fetched(hub, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / REPO / "tiny-Q4_K_M.gguf"
    assert path.read_bytes() == SMALL
    lines = done.stdout.splitlines()
    assert lines[-1] == f"at {path}"
    assert "fetching tiny-Q4_K_M.gguf 30000 30000" in lines
    assert "checking tiny-Q4_K_M.gguf 30000 30000" in lines
    assert not list(path.parent.glob("*.part"))


def test_a_file_that_was_fetched_is_not_fetched_again(hub: FakeHub, tmp_path: Path) -> None:
    assert fetched(hub, tmp_path).returncode == 0
    assert fetched(hub, tmp_path).returncode == 0
    assert len(hub.ranges) == 1


def test_all_parts_of_a_split_model_are_fetched(hub: FakeHub, tmp_path: Path) -> None:
    done = fetched(hub, tmp_path, f"hf:{REPO}:f16")
    assert done.stdout.splitlines()[-1] == f"at {tmp_path / REPO / 'tiny-F16-00001-of-00002.gguf'}"
    assert (tmp_path / REPO / "tiny-F16-00002-of-00002.gguf").read_bytes() == SECOND


def test_a_connection_that_breaks_is_continued_in_the_same_command(hub: FakeHub, tmp_path: Path) -> None:
    """The package takes the bytes of a connection in pieces of 10 MB."""
    huge = gguf_head().ljust(12 << 20, b"h")
    hub.repos = {REPO: {"tiny-Q4_K_M.gguf": huge}}
    hub.breaks_after = [11 << 20]
    assert fetched(hub, tmp_path).returncode == 0
    assert hub.ranges == ["", "bytes=10485760-"]
    assert (tmp_path / REPO / "tiny-Q4_K_M.gguf").read_bytes() == huge


def test_a_download_that_was_interrupted_goes_on_where_it_stopped(hub: FakeHub, tmp_path: Path) -> None:
    digest = hashlib.sha256(SMALL).hexdigest()
    (tmp_path / REPO).mkdir(parents=True)
    (tmp_path / REPO / f"tiny-Q4_K_M.gguf.{digest[:12]}.part").write_bytes(SMALL[:20_000])
    done = fetched(hub, tmp_path)
    assert done.returncode == 0
    assert hub.ranges == ["bytes=20000-"]
    assert "fetching tiny-Q4_K_M.gguf 30000 30000" in done.stdout.splitlines()
    assert (tmp_path / REPO / "tiny-Q4_K_M.gguf").read_bytes() == SMALL


def test_a_connection_that_stays_away_keeps_what_came_and_says_so(hub: FakeHub, tmp_path: Path) -> None:
    digest = hashlib.sha256(SMALL).hexdigest()
    (tmp_path / REPO).mkdir(parents=True)
    (tmp_path / REPO / f"tiny-Q4_K_M.gguf.{digest[:12]}.part").write_bytes(SMALL[:20_000])
    hub.is_down = True
    done = fetched(hub, tmp_path)
    assert done.returncode == 1
    assert f"no connection to {hub.url}" in done.stderr
    assert "20 kB are kept. Run the same command again to continue there." in done.stderr
    assert "Traceback" not in done.stderr
    hub.is_down = False
    assert fetched(hub, tmp_path).returncode == 0


def test_a_wrong_checksum_deletes_nothing_and_says_what_to_type(hub: FakeHub, tmp_path: Path) -> None:
    hub.wrong_sums = True
    done = fetched(hub, tmp_path)
    kept = part(tmp_path)
    assert kept.read_bytes() == SMALL
    assert f"{kept} has the SHA-256 {hashlib.sha256(SMALL).hexdigest()}, and the hub says" in done.stderr
    assert f"To fetch it again: rm '{kept}' and toolspeak up hf:{REPO}" in done.stderr
    assert not (tmp_path / REPO / "tiny-Q4_K_M.gguf").exists()


def test_a_quantisation_that_does_not_exist_lists_those_that_do(hub: FakeHub, tmp_path: Path) -> None:
    done = fetched(hub, tmp_path, f"hf:{REPO}:Q3_K_S")
    assert done.stderr == (
        f"hf:{REPO}:Q3_K_S: there is no Q3_K_S. There are F16 (18 kB), Q4_K_M (30 kB), Q8_0 (200 kB). "
        f"Type: toolspeak up hf:{REPO}:Q4_K_M\n"
    )


def test_a_gated_model_says_what_to_accept_and_takes_the_token(hub: FakeHub, tmp_path: Path) -> None:
    hub.gated.add(REPO)
    done = fetched(hub, tmp_path)
    assert f"Accept them at {hub.url}/{REPO}, and set HF_TOKEN" in done.stderr
    assert fetched(hub, tmp_path, HF_TOKEN=hub.token).returncode == 0


def test_the_token_goes_to_the_hub_and_not_to_the_storage_of_others(hub: FakeHub, tmp_path: Path) -> None:
    with FakeHub({REPO: FILES}) as storage:
        hub.storage = storage.url
        assert fetched(hub, tmp_path, HF_TOKEN=hub.token).returncode == 0
        assert (hub.tokens, storage.tokens) == ([], [""])
    hub.storage = ""
    assert fetched(hub, tmp_path, f"hf:{REPO}:Q8_0", HF_TOKEN=hub.token).returncode == 0
    assert hub.tokens == [f"Bearer {hub.token}"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hf:org/none", "hf:org/none: the hub knows no such repository, or it is private."),
        ("hf:org/plain", "the repository has no GGUF file. Look for one whose name ends in -GGUF: toolspeak up hf:"),
    ],
)
def test_what_is_not_there_is_one_line(hub: FakeHub, tmp_path: Path, name: str, said: str) -> None:
    done = fetched(hub, tmp_path, name)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_offline_is_honoured(hub: FakeHub, tmp_path: Path) -> None:
    done = fetched(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert done.stderr == f"hf:{REPO}: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it: unset it\n"
    assert hub.ranges == []


def test_no_hub_at_all_is_one_line(hub: FakeHub, tmp_path: Path) -> None:
    done = fetched(hub, tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert "no connection to http://127.0.0.1:9 (" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_server_that_is_no_hub_is_one_line(hub: FakeHub, tmp_path: Path) -> None:
    hub.is_other = True
    done = fetched(hub, tmp_path)
    assert done.stderr == f"hf:{REPO}: {hub.url} does not answer as a hub does. Is HF_ENDPOINT right?\n"


def test_without_the_package_the_line_to_type_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadConfig, match=r"pip install 'toolspeak\[hub\]'"):
        hubs.fetch(HubName(REPO), tmp_path, silent)


@pytest.mark.parametrize("text", ["hf:", "hf:repo", "hf:a/b/c", "hf:../../etc", "hf:a/b:", "hf:a/b:../c"])
def test_a_name_that_is_none_shows_one(text: str) -> None:
    with pytest.raises(BadConfig, match="hf:ORG/REPO:QUANT"):
        parse_name(text)


def test_a_name_is_read() -> None:
    assert parse_name("hf:Qwen/Qwen3-8B-GGUF:Q4_K_M") == HubName("Qwen/Qwen3-8B-GGUF", "Q4_K_M")
    assert parse_name("hf:Qwen/Qwen3-8B-GGUF") == HubName("Qwen/Qwen3-8B-GGUF")

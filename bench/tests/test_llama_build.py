"""The server that is compiled for a machine is found on such a machine only, and its source is what was pinned."""

import subprocess
from pathlib import Path

import pytest

from testkit import llama_build
from testkit.llama_build import VERSION, build, built, machine


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "toolspeak"


def test_a_server_is_found_on_a_processor_of_the_same_features_only(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built() is None
    program = cache / f"llama-server-{VERSION}-{machine()}" / "llama-server"
    program.parent.mkdir(parents=True)
    program.touch()
    assert built() == program
    assert build() == program  # nothing is done twice
    monkeypatch.setattr(llama_build, "machine", lambda: "another")
    assert built() is None


def test_another_source_than_the_pinned_one_is_not_unpacked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[object], **_options: object) -> None:
        raise AssertionError(f"{command} ran")

    folder = cache / "llama-server-build"
    (folder / "venv").mkdir(parents=True)
    (folder / "venv" / "complete").touch()
    (folder / f"llama_cpp_python-{VERSION}.tar.gz").write_bytes(b"something else")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("shutil.which", str)  # every program is here
    with pytest.raises(SystemExit, match="has the sha256"):
        build()


def test_a_machine_without_a_compiler_is_told_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", dict[str, str]().get)  # no program is here
    with pytest.raises(SystemExit, match=r"apt install g\+\+"):
        build()
    assert not cache.exists()

"""A server that is compiled for a machine is found on such a machine only, and its source matches the pin."""

import subprocess
from pathlib import Path

import pytest

from testkit import llama_build
from testkit.llama_build import ANSWERS, AVX512, VERSION, build, built, target


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "toolspeak"


def test_a_server_is_found_on_a_processor_of_the_same_features_only(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built() is None
    monkeypatch.setattr(llama_build, "features", lambda: {"avx2", "fma"})
    program = cache / f"llama-server-{VERSION}-{target().name}" / "llama-server"
    program.parent.mkdir(parents=True)
    program.touch()
    assert built() == program
    assert build() == program  # nothing is done twice
    monkeypatch.setattr(llama_build, "features", lambda: {"avx2"})
    assert built() is None


@pytest.mark.parametrize(("features", "same"), [(AVX512, True), (AVX512 | {"amx_int8"}, True), ({"avx2"}, False)])
def test_a_processor_that_can_do_more_than_that_of_the_answers_is_compiled_for_as_that_one(
    features: set[str], same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_build, "features", lambda: features)
    assert (target() == ANSWERS) is same
    assert target().options["GGML_NATIVE"] == ("OFF" if same else "ON")


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

"""Fetches the source package of vLLM, by its pins, and unpacks its tests of parsers into `build/`."""

import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("tests/tool_parsers", "tests/reasoning")
"""The tests of single parsers. Those in `tests/parser` look inside vLLM's own parsers, or need the tokenizers of
Mistral and Cohere, which the package does not have."""
_IMPORTED: Final = "tests/parser/engine/"
_BACKEND: Final = """\
from pathlib import Path

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = Path(folder, "vllm-{version}.dist-info")
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\\nName: vllm\\nVersion: {version}\\n")
    return info.name
"""
"""A build backend in place of setuptools: pip asks a source package for its metadata before it keeps it, and vLLM's own
answer needs torch and a compiler."""


def unpacked_tests() -> Path:
    """Return the folder with the tests, which are fetched if they are not there."""
    pins = _pins()
    version = pins.split("==", 1)[1].split(" ", 1)[0]
    folder = ROOT / "build" / f"vllm-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as temporary:
            package = _download(Path(temporary), pins, version)
            _unpack(package, Path(temporary, "unpacked"))
            folder.parent.mkdir(exist_ok=True)
            Path(temporary, "unpacked").rename(folder)
    return folder


def _pins() -> str:
    """Return the pinned version of vLLM, with the hashes of its wheels and of its source package."""
    text = (ROOT / "requirements" / "vllm-wheel.txt").read_text(encoding="utf-8")
    found = re.search(r"^vllm==(?:.*\\\n)+.*\n", text, re.MULTILINE)
    assert found, "requirements/vllm-wheel.txt has no vLLM: run `just pin`"
    return found[0]


def _download(folder: Path, pins: str, version: str) -> Path:
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    (backend / "build_meta.py").write_text(_BACKEND.format(version=version), encoding="utf-8")
    (folder / "pins.txt").write_text(pins, encoding="utf-8")
    options = ("--no-deps", "--no-binary", "vllm", "--no-build-isolation", "--require-hashes", "--quiet")
    command = (sys.executable, "-m", "pip", "download", *options, "-r", str(folder / "pins.txt"), "-d", str(folder))
    subprocess.run(("env", f"PYTHONPATH={backend.parent}", *command), check=True)
    return next(folder.glob("vllm-*.tar.gz"))


def _unpack(package: Path, target: Path) -> None:
    """Unpack the tests. `tests` itself stays without `__init__.py`: so it and our own `tests` are one package."""
    with tarfile.open(package) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.isfile() and path.startswith((*FOLDERS, _IMPORTED)):
                content = archive.extractfile(member)
                assert content
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                (target / path).write_bytes(content.read())

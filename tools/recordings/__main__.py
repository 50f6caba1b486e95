"""`just recordings`: record `launch`, `up`, `doctor` and `run` as docs/*.svg; `--only NAME` records one.

`up` and `doctor` run the real model of 0.5 GB; Claude Code in `launch` and the task of `run` have scripted models, so
that the recordings are short and the same each time. Needs npm.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from testkit.llama_models import path_of
from testkit.llama_server import LlamaServer, free_cores, free_port
from testkit.llama_server import python as llama_python
from testkit.scripted_model import scripted
from tests.clients.drive import PATHS
from tests.clients.install import install, pins
from tests.clients.rows import node
from tests.clients.script import prompt_of
from tests.live.launch import CODE, scripted_upstream
from tools.recordings.drawing import draw
from tools.recordings.terminal import Recorder, renamed
from tools.run_picture import CART, TASK, say

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SMALL = "qwen2.5-coder-0.5b"
PROGRAM = str(Path(sys.executable).parent / "toolspeak")


def recorder(folder: Path, **more: str) -> Recorder:
    """Return a terminal in an empty home and an empty folder."""
    home, work = folder / "home", folder / "shop"
    home.mkdir()
    work.mkdir()
    agents = [str(pins()[name].folder / "node_modules/.bin") for name in ("claude-code", "codex")]
    packages = Path(llama_python()).parent.parent / f"lib/python3.{sys.version_info.minor}/site-packages"
    env = {
        "PATH": os.pathsep.join([*agents, str(Path(node()).parent), PATHS]),
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(packages)]),
        **more,
    }
    return Recorder(work, env)


def up(folder: Path) -> Recorder:
    """Record a model that is started, and ended with Ctrl-C."""
    screen = recorder(folder)
    model = screen.folder / f"{SMALL}.gguf"
    model.symlink_to(path_of(SMALL))
    screen.run(f"toolspeak up {model.name}", [PROGRAM, "up", model.name, "--threads", str(free_cores())])
    screen.expect("OLLAMA_HOST", 180)
    screen.watch(2)
    screen.press("\x03")
    if status := screen.end():
        raise SystemExit(f"toolspeak up ended with {status}")
    return screen


def launch(folder: Path) -> Recorder:
    """Record the list of agents, then Claude Code that writes a file."""
    # A gateway on the default port of this machine must not be found.
    screen = recorder(folder, DISABLE_AUTOUPDATER="1", IS_SANDBOX="1", TOOLSPEAK_PORT=str(free_port()))
    subprocess.run(["git", "init", "--quiet", str(screen.folder)], check=True)
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "light-ansi",
        "projects": {str(screen.folder): {"hasTrustDialogAccepted": True}},
    }
    (folder / "home" / ".claude.json").write_text(json.dumps(settings))
    with scripted_upstream() as url:
        screen.env = {**screen.env, "TOOLSPEAK_UPSTREAM": url, "TOOLSPEAK_MODE": "force"}
        words = ["--", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"]
        screen.run("toolspeak launch claude", [PROGRAM, "launch", "claude", *words])
        screen.expect("Claude Code v", 60)
        screen.watch(2)
        screen.press(prompt_of(CODE, "."))
        screen.watch(0.5)
        screen.press("\r")
        screen.expect(f"fin-{CODE}", 60)
        screen.watch(2)
        shown = list(screen.frames)
        screen.press("/exit")
        screen.watch(1)
        screen.press("\r")
        screen.end()
        screen.frames = shown
    return screen


def doctor(folder: Path) -> Recorder:
    """Record the doctor with a real model."""
    screen = recorder(folder)
    with LlamaServer(SMALL) as server:
        screen.env = {**screen.env, "TOOLSPEAK_UPSTREAM": f"{server.url}/v1"}
        screen.run("toolspeak doctor --quick", [PROGRAM, "doctor", "--quick"])
        screen.watch(1500)
        screen.end()
    return screen


def run(folder: Path) -> Recorder:
    """Record a run that asks before it changes a file."""
    screen = recorder(folder)
    (screen.folder / "cart.py").write_text(CART)
    with scripted() as upstream:
        say(upstream)
        screen.env = {**screen.env, "TOOLSPEAK_UPSTREAM": upstream.url}
        screen.run(f'toolspeak run "{TASK}"', [PROGRAM, "run", TASK, "--tools", "files"])
        screen.expect(r"allow it\?")
        screen.watch(1.5)
        screen.press("y\r")
        if status := screen.end():
            raise SystemExit(f"toolspeak run ended with {status}")
    return screen


SCENES: dict[str, tuple[str, Callable[[Path], Recorder]]] = {
    "launch": ("launch.svg", launch),
    "up": ("up.svg", up),
    "doctor": ("doctor.svg", doctor),
    "run": ("run-terminal.svg", run),
}


def main() -> None:
    """Record and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SCENES)
    parser.add_argument("--folder", type=Path, default=DOCS)
    options = parser.parse_args()
    install(["claude-code", "codex"])
    for name in [options.only] if options.only else SCENES:
        file, scene = SCENES[name]
        with tempfile.TemporaryDirectory() as folder:
            screen = scene(Path(folder))
        frames = [renamed(frame, str(screen.folder), "~/shop") for frame in screen.frames]
        picture = draw(frames, f"toolspeak {name}")
        (options.folder / file).write_text(picture, encoding="utf-8")
        print(f"{file}: {len(screen.frames)} screens, {len(picture) // 1024} KB", flush=True)
        print(screen.frames[-1].text.rstrip(), flush=True)


if __name__ == "__main__":
    main()

"""A state folder that is full, read-only or no folder: one line and a status, never a traceback."""

import contextlib
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

from testkit.scripted_upstream import listening
from tests.attack.arena import Arena
from tests.attack.model import COLD
from tests.attack.target import USER

HELD_BEFORE = False
PATIENCE_S = 15.0
COMMANDS: dict[str, tuple[str, ...]] = {
    "serve": ("serve",),
    "worker": ("worker",),
    "runs": ("runs", "list"),
    "run": ("run", "--yes", "Say hi."),
    "doctor": ("doctor", "--model", "good"),
    "mcp tools": ("mcp", "tools", "odd", "--approve"),
}
MOST_LINES = 8


def attack(arena: Arena) -> None:
    with listening(("good",)) as upstream:
        upstream.answers(COLD)
        runs = '[runs]\nenabled = true\n[mcp.odd]\ncommand = "/bin/true"\n'
        config = arena.config(upstream.port, runs)
        for name, make in list(STATES.items())[: 1 if arena.quick else None]:
            for command, words in list(COMMANDS.items())[: 2 if arena.quick else None]:
                folder = arena.fresh_folder()
                with make(arena, folder) as state:
                    if state is None:
                        continue
                    (folder / "toolspeak.toml").write_text(config)
                    (folder / "toolspeak.toml").chmod(0o600)
                    arena.own(folder / "toolspeak.toml")
                    _run(arena, folder, state, f"{command}, the folder is {name}", words)


def _run(arena: Arena, folder: Path, state: Path, title: str, words: tuple[str, ...]) -> None:
    file = folder / "toolspeak.toml"
    env = {**arena.environ(folder), "XDG_STATE_HOME": str(state), "TOOLSPEAK_CONFIG": str(file)}
    command = arena.target.words(arena.who, *words, env=env)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLSPEAK", "PYTHON"))}
    process = subprocess.Popen(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = process.communicate(timeout=4 if words[0] in ("serve", "worker") else PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        if words[0] not in ("serve", "worker"):
            err += b"(it hung)"
    said = (out + err).decode(errors="replace")
    effects = ["a traceback"] if "Traceback (most recent" in said else []
    if len(said.splitlines()) > MOST_LINES and words[0] in ("serve", "worker", "runs"):
        effects.append(f"{len(said.splitlines())} lines")
    if "(it hung)" in said:
        effects.append("it hung")
    arena.record(title, *effects)


@contextlib.contextmanager
def _read_only(arena: Arena, folder: Path) -> Generator[Path | None]:
    state = folder / "state"
    state.mkdir()
    if arena.who == USER:
        state.chmod(0o555)
        yield state
        return
    with _mounted(state, "ro,size=1m") as mounted:
        yield mounted


@contextlib.contextmanager
def _full(arena: Arena, folder: Path) -> Generator[Path | None]:
    state = folder / "state"
    state.mkdir()
    with _mounted(state, "size=64k,mode=777") as mounted:
        if mounted is not None:
            with contextlib.suppress(OSError), (mounted / "filler").open("wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
            arena.own(mounted)
        yield mounted


@contextlib.contextmanager
def _file(arena: Arena, folder: Path) -> Generator[Path | None]:
    """Put a file in the folder's place."""
    (folder / "state").mkdir()
    state = folder / "taken"
    state.write_text("")
    arena.own(state)
    yield state


@contextlib.contextmanager
def _garbage(arena: Arena, folder: Path) -> Generator[Path | None]:
    """Put garbage into the folder's files."""
    state = folder / "state"
    (state / "toolspeak" / "mcp").mkdir(parents=True)
    (state / "toolspeak" / "profiles").mkdir()
    for name in ("runs.sqlite", "mcp/odd.json", "profiles/up.json", "profiles/good.json"):
        (state / "toolspeak" / name).write_bytes(b"\xff\x00garbage" * 100)
    arena.own(state, *state.rglob("*"))
    yield state


@contextlib.contextmanager
def _mounted(folder: Path, options: str) -> Generator[Path | None]:
    """Mount a small file system there; without the right to, nothing is tried."""
    if os.geteuid():
        yield None
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "attack", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


STATES = {"read-only": _read_only, "full": _full, "a file": _file, "full of garbage": _garbage}

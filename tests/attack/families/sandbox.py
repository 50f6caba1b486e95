"""Escapes from the sandboxes: every attempt of `just sandbox`, made with the code of the attacked installation."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.attack.arena import REPOSITORY, Arena
from tests.attack.target import ROOT
from tests.security.sandbox.attempts import AREAS
from tests.security.sandbox.ordinary import as_nobody
from tests.security.sandbox.run import MODULE

HELD_BEFORE = False
SANDBOXES = ("bwrap", "sandlock")
PATIENCE_S = 600


def attack(arena: Arena) -> None:
    if not (arena.target.package / "agent/sandbox").is_dir():  # the attempts import its modules by name
        arena.notes.append(f"sandbox as {arena.who}: not attacked: the installation is older than `toolspeak.agent`")
        return
    tree = _tree(arena)
    for name in SANDBOXES[:1] if arena.quick else SANDBOXES:
        words = [arena.target.python, "-m", MODULE, "--inner", "--sandbox", name]
        words += ["--areas", AREAS[0]] if arena.quick else []
        env = ["/usr/bin/env", "PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={tree}/src"]
        command = [*env, *words] if arena.who == ROOT else as_nobody(tree, words)
        done = subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise RuntimeError(f"the attempts in {name} broke off: {done.stderr[-400:]}")
        rows = json.loads(done.stdout.splitlines()[-1])
        if isinstance(rows, str):
            arena.notes.append(f"{name} as {arena.who}: not used: {rows}")
            continue
        for row in rows:
            arena.record(f"{name}: {row['name']}", row["problem"])


def _tree(arena: Arena) -> Path:
    """Return a tree with the attacked code and our attempts."""
    if arena.target.tree == REPOSITORY:
        return REPOSITORY
    tree = arena.folder / "tree"
    (tree / "src").mkdir(parents=True)
    shutil.copytree(arena.target.package, tree / "src/toolspeak")
    for name in ("tests", "bench"):
        shutil.copytree(REPOSITORY / name, tree / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    return tree

"""The installation that is attacked: this one, or another one that `--target PYTHON` names."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.security.sandbox.ordinary import as_nobody

ROOT, USER = "root", "user"
_ASK = "import json, sys, toolspeak; print(json.dumps([toolspeak.__file__, sys.prefix]))"


@dataclass(frozen=True)
class Target:
    """A Python with toolspeak in it. `tree` is its repository, or the folder of its environment."""

    python: str
    tree: Path
    package: Path
    commit: str

    def words(self, who: str, *words: str, env: dict[str, str], nofile: int = 0) -> list[str]:
        """Return the words that run `toolspeak WORDS` as root or as an ordinary user."""
        limit = ["/usr/bin/prlimit", f"--nofile={nofile}:{nofile}"] if nofile else []
        given = ["/usr/bin/env", *(f"{name}={value}" for name, value in env.items())]
        command = [*given, *limit, self.python, "-P", "-m", "toolspeak", *words]
        return as_nobody(self.tree, command) if who == USER and not os.geteuid() else command


def find_target(python: str = "") -> Target:
    """Ask a Python where its toolspeak is; without one, take our own."""
    python = os.path.abspath(python or sys.executable)  # noqa: PTH100 # a resolved link would lose the environment
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run(
        [python, "-c", _ASK], cwd="/", env=environ, check=True, capture_output=True, text=True, timeout=60
    ).stdout
    file, prefix = json.loads(said)
    package = Path(file).resolve().parent
    tree = package.parent.parent if package.parent.name == "src" else Path(prefix)
    return Target(python, tree, package, _commit(tree))


def _commit(tree: Path) -> str:
    """Return the commit of a tree, marked if files differ from it; the package's version if there is none."""
    asked = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"

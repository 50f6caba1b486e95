"""A command that needs an optional package says which, with the line that installs it, and no traceback."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from testkit.gguf import write_gguf
from toolspeak.extras import EXTRAS

ROOT = Path(__file__).parents[3]
WITHOUT = """
import sys
from importlib.machinery import PathFinder

real, blocked = PathFinder.find_spec, set(sys.argv.pop(1).split(","))

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in blocked else real(name, path, target)

PathFinder.find_spec = find_spec
from toolspeak.cli import main
main(sys.argv[1:])
"""
"""The command line in a Python that has none of these modules."""
UPSTREAM = ("--upstream", "http://127.0.0.1:9/v1")
SERVE = ("serve", "--port", "0", *UPSTREAM)
CASES = (
    ("runs", ("worker", *UPSTREAM), "", "toolspeak worker"),
    ("runs", ("runs",), "", "toolspeak runs"),
    ("runs", ("runs", "show", "1a2b"), "", "toolspeak runs"),
    ("runs", ("runs", "cancel", "1a2b"), "", "toolspeak runs"),
    ("runs", ("runs", "resume", *UPSTREAM, "1a2b"), "", "toolspeak runs"),
    ("runs", ("run", *UPSTREAM, "--folder", ".", "--continue", "1a2b", "Go on."), "", "toolspeak run --continue"),
    (
        "runs",
        ("serve", "--port", "0", *UPSTREAM),
        "[runs]\nenabled = true\ndatabase = 'sqlite:///runs.db'",
        "runs.database",
    ),
    ("runs", ("run", *UPSTREAM, "--folder", ".", "Count."), "[runs]\ndatabase = 'sqlite:///runs.db'", "runs.database"),
    ("mcp", ("mcp", "tools"), "", "MCP"),
    ("mcp", ("mcp", "serve", *UPSTREAM), "", "MCP"),
    ("redis", SERVE, "[redis]\nurl = 'redis://127.0.0.1:9'", "redis.url"),
)


def without(extra: str, *args: str, config: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line without an extra, in a home of its own."""
    file = home / "toolspeak.toml"
    file.write_text(config)
    environ = {"TOOLSPEAK_CONFIG": str(file), "XDG_STATE_HOME": str(home / "state"), "PATH": "", "HOME": str(home)}
    command = [sys.executable, "-c", WITHOUT, ",".join(EXTRAS[extra]), *args]
    options = {"capture_output": True, "text": True, "timeout": 50, "env": environ, "cwd": home, "input": ""}
    return subprocess.run(command, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(("extra", "args", "config", "purpose"), CASES, ids=lambda case: str(case)[:30])
def test_a_missing_extra_is_one_message(
    extra: str, args: tuple[str, ...], config: str, purpose: str, tmp_path: Path
) -> None:
    done = without(extra, *args, config=config, home=tmp_path)
    message = f"toolspeak: {purpose} needs an optional package: pip install 'toolspeak[{extra}]'\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_a_model_cannot_be_run_without_a_server(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf")
    done = without("llama", "up", "model.gguf", config="", home=tmp_path)
    assert done.returncode == 2
    assert "pip install 'toolspeak[llama]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_table_has_every_extra_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])

"""`just dependency-range`: the tests of the library and the gateway on the lowest and the newest allowed dependencies.

    python -m tools.dependency_range [--only lowest|highest] [--save] [TEST …]

For each end of the ranges in pyproject.toml it makes a virtual environment with uv, installs the package there and runs
the tests. The test tools keep their usual versions: they are not part of the range.
`--save` writes bench/results/dependency-range.json; docs/dependencies.md reports what it proved.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from testkit.report import close

ROOT: Final = Path(__file__).resolve().parent.parent
RESULT: Final = ROOT / "bench" / "results" / "dependency-range.json"
RESOLUTIONS: Final = {"lowest": "lowest-direct", "highest": "highest"}
EXTRAS: Final = "redis,jwt,mcp,runs,otel,hub"
TESTS: Final = (
    "tests/unit/client",
    "tests/unit/text",
    "tests/unit/toolset",
    "tests/unit/wires",
    "tests/unit/ir",
    "tests/unit/runtime",
    "tests/unit/cli",
    "tests/gateway",
)
LEFT_OUT: Final = {
    "tests/unit/cli/test_error_messages.py": "the words of usage errors are click's, and differ between its versions",
    "tests/unit/cli/test_up.py": "it needs a model server",
    "tests/unit/cli/test_run_terminal.py": "keys and widths of a terminal: no dependency of the range decides them",
    "tests/gateway/test_overload.py": "it measures time",
    "tests/gateway/test_streams.py": "it measures time",
    "tests/gateway/test_plugins.py": "it installs a package into the environment",
    "tests/gateway/test_runs_fleet.py": "it needs PostgreSQL",
    "tests/gateway/test_runs_outage.py": "it needs PostgreSQL",
}
"""Tests that do not run here, and why."""
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")


def names_of(requirements: list[str]) -> list[str]:
    """Return the names of packages, without their bounds."""
    return [found[0] for each in requirements if (found := _NAME.match(each))]


def test_tools(project: dict[str, Any]) -> list[str]:
    """Return the packages that only tests need, with their bounds."""
    ours = {*names_of(project["project"]["dependencies"])}
    for extra in project["project"]["optional-dependencies"].values():
        ours |= {*names_of(extra)}
    return [each for each in project["dependency-groups"]["test"] if names_of([each])[0] not in ours]


def tried(end: str, tests: list[str]) -> dict[str, Any]:
    """Make the environment of one end, run the tests in it, and return the result."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        environ = {**os.environ, "VIRTUAL_ENV": str(python.parents[1]), "HYPOTHESIS_PROFILE": "quick"}
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(python.parents[1])], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(python)]
        # uv would take an older build of this folder from its cache, as long as pyproject.toml is the same.
        install = [*install, "--refresh-package", "toolspeak"]
        subprocess.run([*install, "--resolution", RESOLUTIONS[end], f"{ROOT}[{EXTRAS}]"], check=True, env=environ)
        subprocess.run([*install, *test_tools(project)], check=True, env=environ)
        versions = json.loads(
            subprocess.run(
                [uv, "pip", "list", "--format", "json", "--python", str(python)], check=True, capture_output=True
            ).stdout
        )
        left_out = [f"--ignore={each}" for each in LEFT_OUT]
        command = [
            str(python),
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:anyio",
            *left_out,
            *tests,
        ]
        done = subprocess.run(command, check=False, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
    print(done.stdout[-4000:] if done.returncode else done.stdout.splitlines()[-1], flush=True)
    direct = {*names_of(project["project"]["dependencies"])}
    for extra in EXTRAS.split(","):
        direct |= {*names_of(project["project"]["optional-dependencies"][extra])}
    return {
        "ok": done.returncode == 0,
        "tests": done.stdout.splitlines()[-1].strip("= ") if done.stdout else "",
        "versions": {each["name"]: each["version"] for each in versions if each["name"] in {n.lower() for n in direct}},
    }


def main() -> None:
    """Try both ends; exit with 1 if tests fail on one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=RESOLUTIONS)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("tests", nargs="*", default=[*TESTS])
    options = parser.parse_args()
    # A job in the background of a shell ignores Ctrl-C, and so would the programs that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found: dict[str, Any] = {}
    for end in (options.only,) if options.only else RESOLUTIONS:
        print(f"--- {end}", flush=True)
        found[end] = tried(end, options.tests)
    if options.save:
        before: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
        RESULT.write_text(json.dumps(before | found, indent=2) + "\n", encoding="utf-8")
    close("dependency-range", ok=all(each["ok"] for each in found.values()), **found)


if __name__ == "__main__":
    main()

"""`just server-tests`: vLLM's own tests of its parsers, with toolspeak's parsers in place of vLLM's.

The tests come from vLLM's source package and run in `.venv-vllm`, twice: with vLLM's parsers, to see which tests fail
here without us, and with ours (`vllm_plugin`). Each test that fails with ours only must be in `vllm_differences.toml`,
with its reason, and each test that is there must fail. `--save` keeps the counts in bench/results/server-tests.json,
from which `just docs` makes the table of docs/vllm-sglang.md; `--list` prints each test that differs.

SGLang publishes no source package with its tests.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from testkit.report import close
from tests.model_servers.run import python_of
from tests.model_servers.vllm_source import FOLDERS, ROOT, unpacked_tests

DIFFERENCES: Final = Path(__file__).with_name("vllm_differences.toml")
RESULTS: Final = ROOT / "bench" / "results" / "server-tests.json"
_SETTINGS: Final = "[pytest]\nmarkers =\n    cpu_test: of vLLM\n    skip_global_cleanup: of vLLM\n"


@dataclass
class Kind:
    """The tests of one kind of parsers: how many there are, and how they went."""

    tests: int = 0
    passed: int = 0
    passed_unexpectedly: int = 0
    """Those among them that vLLM marks as failures of its own parser."""
    failed_as_expected: int = 0
    differences: Counter[str] = field(default_factory=Counter[str])


def outcomes(python: Path, tests: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Run the tests; return the outcome of each, by its id."""
    with tempfile.TemporaryDirectory() as temporary:
        settings, found = Path(temporary, "pytest.ini"), Path(temporary, "outcomes.json")
        settings.write_text(_SETTINGS, encoding="utf-8")
        command = [
            str(python),
            "-m",
            "pytest",
            "-c",
            str(settings),
            "--rootdir",
            str(tests),
            "-q",
            "--tb=no",
            "-W",
            "ignore",
        ]
        command += ["-p", "no:cacheprovider", "-p", "tests.model_servers.vllm_plugin", "--import-mode=importlib"]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tests}"}
        process = subprocess.run(
            [*command, "--outcomes", str(found), *options, *FOLDERS],
            cwd=tests,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode not in (0, 1):  # 1: some tests fail
            raise SystemExit(f"pytest broke off:\n{process.stdout[-3000:]}{process.stderr[-3000:]}")
        results: dict[str, dict[str, Any]] = json.loads(found.read_text(encoding="utf-8"))
        return results


def listed() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield each reason and pattern of the list. `*` stands for any text; the brackets of ids stand for themselves."""
    reasons: dict[str, Any] = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))
    for reason, entry in reasons.items():
        for pattern in entry["tests"]:
            yield reason, re.compile("tests/" + ".*".join(map(re.escape, pattern.split("*"))))


def judge(
    ours: Mapping[str, Mapping[str, Any]], theirs: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Kind], dict[str, str], int]:
    """Return the counts of each kind, the tests that differ with their reasons, and how many fail without us too."""
    patterns, kinds = list(listed()), {folder.split("/")[1]: Kind() for folder in FOLDERS}
    different: dict[str, str] = {}
    failing_without = 0
    for test, found in ours.items():
        outcome, kind = found["outcome"], kinds[test.split("/")[1]]
        if outcome == "failed" and theirs.get(test, {}).get("outcome") == "failed":
            failing_without += 1
            continue
        if outcome == "skipped" or (outcome != "failed" and not found["ours"]):
            continue  # it tests something else than a parser that we have replaced
        kind.tests += 1
        if outcome == "failed":
            reason = next((reason for reason, pattern in patterns if pattern.fullmatch(test)), "not listed")
            different[test] = reason
            kind.differences[reason] += 1
        else:
            kind.passed += outcome in ("passed", "xpassed")
            kind.passed_unexpectedly += outcome == "xpassed"
            kind.failed_as_expected += outcome == "xfailed"
    return kinds, different, failing_without


def stale(ours: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what the list has too much: tests that do not fail, and patterns without a test."""
    found: list[str] = []
    for _, pattern in listed():
        tests = [test for test in ours if pattern.fullmatch(test)]
        found += [test for test in tests if ours[test]["outcome"] != "failed"] if tests else [pattern.pattern]
    return found


def main() -> None:
    """Run the tests, print what the list does not say, and close."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    tests, python = unpacked_tests(), python_of("vllm")
    theirs, ours = outcomes(python, tests, "--own-parsers"), outcomes(python, tests)
    kinds, different, failing_without = judge(ours, theirs)
    unlisted = [test for test, reason in different.items() if reason == "not listed"]
    superfluous = stale(ours)
    for test, reason in different.items() if options.list else ():
        print(reason, test)
    for test in unlisted:
        print("NOT LISTED", test)
    for test in superfluous:
        print("LISTED, BUT DOES NOT FAIL", test)
    figures = {
        "server": tests.name,
        "fail_without_us_too": failing_without,
        **{name: vars(kind) for name, kind in kinds.items()},
    }
    if options.save:
        RESULTS.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    close("server-tests", ok=not unlisted and not superfluous, **figures)


if __name__ == "__main__":
    main()

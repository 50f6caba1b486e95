"""`just clients`: real agents and SDKs work with a model without tool calling, and really run their tools.

The fast tier by default, against every kind of upstream; `--all` adds the other clients and writes
`bench/results/clients.json` and `docs/clients.md`. `--only TEXT` runs the cases whose name has TEXT in it, `--new`
those without a result, `--upstream NAME` one kind of upstream; with `--all`, the results of other cases stay. `--keep
FOLDER` keeps what every client sent, got and said. Everything runs in a network namespace with nothing but loopback,
which takes root or user namespaces.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from testkit.report import close
from tests.clients.drive import Result, inside, summary, write
from tests.clients.install import ROOT, install
from tests.clients.rows import SETTINGS, Case, brief, cases, copy_scripts
from tests.clients.served import slug
from tools.clients_table import PAGE, RESULTS, page
from tools.clients_table import results as measured_results

NAMESPACE = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
ENTERED = "TOOLSPEAK_CLIENTS_INSIDE"

Key: TypeAlias = tuple[str, str, str]
"""Client, wire, upstream."""


def chosen(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the options name."""
    found = cases(everything=options.all or bool(options.only))
    found = brief(found) if options.brief else found
    measured = {key_of(result) for result in measured_results()} if options.new else set[Key]()
    found = [case for case in found if case_key(case) not in measured]
    wanted = [case for case in found if options.only.lower() in case.name.lower()]
    return [case for case in wanted if options.upstream in {"", slug(case.setting.name)}]


def enter() -> NoReturn:
    """Become this command again, in a namespace that only has loopback: who stops it stops everything."""
    entry = [*NAMESPACE, *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if not shutil.which("ip") or subprocess.run(["sh", "-c", '"$@"', "sh", *entry, "true"], check=False).returncode:
        raise SystemExit(f"`{' '.join(entry)}` and `ip` are needed: run as root, or allow user namespaces")
    script = 'ip link set lo up && exec "$@"'
    command = [*entry, "sh", "-c", script, "sh", sys.executable, "-m", "tests.clients.run", *sys.argv[1:]]
    os.chdir(ROOT)
    os.execvpe(command[0], command, {**os.environ, ENTERED: "yes"})  # noqa: S606  found on the path


def run(options: argparse.Namespace) -> None:
    """Run the cases, in the namespace."""
    folder = options.keep or Path(tempfile.mkdtemp(prefix="toolspeak-clients-"))
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    wanted = chosen(options)
    results = sorted(inside(wanted, options.jobs, folder), key=lambda result: wanted.index(result.case))
    seconds = round(time.perf_counter() - started, 1)
    if options.all:
        write(renewed([summary(result) for result in results]), RESULTS)
        PAGE.write_text(page(), encoding="utf-8")
    ok = bool(results) and all(result.ok for result in results)
    if ok and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    close("clients", ok=ok, **figures(results), seconds=seconds)


def renewed(summaries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return all results: new ones in the place of those of the same case, none of cases that are gone."""
    found = {key_of(each): each for each in (*measured_results(), *summaries)}
    keys = map(case_key, cases(everything=True))
    return [found[key] for key in keys if key in found]


def key_of(result: Mapping[str, Any]) -> Key:
    """Return what a result is known by."""
    return result["client"], result["wire"], result["upstream"]


def case_key(case: Case) -> Key:
    """Return what the result of a case is known by."""
    return case.row.client, case.row.wire, case.setting.name


def figures(results: Sequence[Result]) -> dict[str, int]:
    """Count."""
    passed = [result for result in results if not result.faults]
    return {
        "cases": len(results),
        "passed": len(passed),
        "explained": sum(bool(result.faults) and result.ok for result in results),
        "rows": len({result.case.row.name for result in results}),
        "clients": len({result.case.row.client for result in results}),
    }


def main() -> None:
    """Install outside, run inside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--brief", action="store_true", help="each row meets one refusal and one rare form only")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--new", action="store_true", help="only what was never measured")
    parser.add_argument("--upstream", default="", choices=["", *(slug(setting.name) for setting in SETTINGS)])
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--install-only", action="store_true")
    options = parser.parse_args()
    if ENTERED in os.environ:
        run(options)
    started = time.perf_counter()
    copy_scripts()
    install(folder for case in chosen(options) for folder in case.row.needs)
    print(f"installed in {time.perf_counter() - started:.0f} s", flush=True)
    if not options.install_only:
        enter()


if __name__ == "__main__":
    main()

"""`just speed-before-after [REV]`: the speed of this code compared with another commit, in one interleaved run.

    python -m bench.speed_before_after [REV] [--rounds N]

Each bench of the core alternates between the code of REV (default: before the second design) and this code, each
with its own version of the bench and the same interpreter. The smallest CPU time of the rounds counts: a disturbance
only adds to it. The command fails if a figure is more than `MOST` times the old one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from testkit.report import close

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/speed-before-after.json"
BEFORE = "25e14b3"
BENCHES = {
    "speed_core": ("text_us", "prose_us", "any_us", "slowest_call_us"),
    "speed_wires": ("median_ratio", "worst_ratio"),
    "speed_engine": ("off", "native", "force"),
}
"""The benches, and the figures of their closing lines: µs of CPU per chunk, or times that of JSON alone."""
MOST = 1.15
"""Two runs of the same code differ by up to a seventh on a shared machine."""


def run(bench: str, tree: Path) -> dict[str, float]:
    """Run a bench on a tree, and return the figures of its closing line."""
    path = os.pathsep.join((str(tree / "src"), str(tree)))
    command, environ = [sys.executable, "-m", f"bench.{bench}"], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)
    line = json.loads(done.stdout.splitlines()[-1])
    return {name: float(line[name]) for name in BENCHES[bench]}


def smallest(found: dict[str, float], kept: dict[str, float] | None) -> dict[str, float]:
    """Return the smaller value of each figure."""
    return found if kept is None else {name: min(value, kept[name]) for name, value in found.items()}


def main() -> None:
    """Compare."""
    options = argparse.ArgumentParser(prog="bench.speed_before_after")
    options.add_argument("rev", nargs="?", default=BEFORE)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--save", action="store_true")
    chosen = options.parse_args()
    best: dict[tuple[str, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(old), chosen.rev], check=True)
        try:
            for number in range(chosen.rounds):
                for bench in BENCHES:
                    for name, tree in (("before", old), ("after", ROOT)):
                        best[bench, name] = smallest(run(bench, tree), best.get((bench, name)))
                print(f"round {number + 1} of {chosen.rounds}", file=sys.stderr)
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    ratios = dict[str, float]()
    for bench, names in BENCHES.items():
        for name in names:
            before, after = best[bench, "before"][name], best[bench, "after"][name]
            ratios[f"{bench}.{name}"] = round(after / before, 3)
            print(f"{bench:14} {name:16} before {before:7.2f}  after {after:7.2f}  × {after / before:.2f}")
    if chosen.save:
        kept = {f"{bench} {name}": figures for (bench, name), figures in best.items()}
        RESULT.write_text(json.dumps({"rev": chosen.rev, "figures": kept, "ratios": ratios}, indent=1) + "\n")
    close("speed-before-after", ok=max(ratios.values()) <= MOST, most=MOST, worst=max(ratios.values()), **ratios)


if __name__ == "__main__":
    main()

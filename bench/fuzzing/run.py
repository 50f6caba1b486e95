"""`just fuzz-coverage TARGET [--seconds N]`: search one target (http, wires, readers) for exceptions and stalls.

libFuzzer (atheris) mutates inputs and keeps those that reach new branches. Afterwards, without instrumentation, every
kept input is stretched to 100 KB and timed, and every suspected stall is timed again. Passes with no exception and no
step over 50 ms of CPU time per 100 KB. Writes bench/results/fuzz-coverage.json and the kept corpus.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import venv
import zlib
from pathlib import Path
from typing import Any, Final

from testkit.fuzzing import corpus
from testkit.fuzzing.target import STALL_S, STRETCHED, Target, allowed
from testkit.fuzzing.targets import NAMES, load
from testkit.report import close

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".venv-fuzz" / "bin" / "python"
RESULT: Final = ROOT / "bench" / "results" / "fuzz-coverage.json"
STRETCHES: Final = 3
"""Ways in which each kept input is stretched."""
_STATUS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)")
_EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def install() -> None:
    """Make the fuzzer's own environment if it is missing."""
    if PYTHON.exists():
        return
    venv.create(ROOT / ".venv-fuzz", with_pip=True)
    pins = ROOT / "requirements" / "fuzz.txt"
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", pins], check=True)


def search(target: Target, seconds: int, folder: Path) -> dict[str, int]:
    """Run libFuzzer; return its figures. Inputs and findings are left in the folder."""
    inputs, findings, words = folder / "inputs", folder / "findings", folder / "words"
    inputs.mkdir()
    findings.mkdir()
    for data in (*target.seeds(), *corpus.kept(target.name)):
        (inputs / f"{zlib.crc32(data):08x}").write_bytes(data)
    words.write_text("".join(f'"{_quoted(word)}"\n' for word in target.words() if 0 < len(word) <= 64))
    command = [PYTHON, "-m", "bench.fuzzing.worker", target.name, findings, inputs, f"-dict={words}"]
    command += [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=60", "-rss_limit_mb=4096"]
    command += ["-print_final_stats=1", f"-artifact_prefix={findings}/crash-", "-seed=1"]
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    (folder / "log").write_text(done.stdout)
    if done.returncode:
        print(done.stdout[-3000:])
    status = _STATUS.findall(done.stdout)
    executions = _EXECUTIONS.findall(done.stdout)
    last = [int(figure) for figure in (status[-1] if status else ("0", "0", "0", "0"))]
    return {
        "executions": int(executions[-1]) if executions else last[0],
        "branches": last[1],
        "features": last[2],
        "exit_status": done.returncode,
    }


def _quoted(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def exceptions(target: Target, folder: Path) -> list[str]:
    """Run findings again without instrumentation; return those that still raise."""
    found: list[str] = []
    for path in sorted((folder / "findings").iterdir()):
        if path.suffix == ".txt" or path.name.startswith("slow-"):
            continue
        try:
            target.check(path.read_bytes())
        except Exception as error:  # noqa: BLE001 - all of them count
            found.append(f"{type(error).__name__}: {str(error)[:200]} on {path.read_bytes()[:400]!r}")
    return found


def stalls(target: Target, inputs: list[bytes], folder: Path) -> tuple[list[str], float]:
    """Time kept inputs, stretched, and suspects; return the stalls and the slowest step in seconds per 100 KB."""
    suspects = [path.read_bytes() for path in (folder / "findings").glob("slow-*[!t]") if path.suffix != ".txt"]
    stretched = [target.stretch(data, random.Random(number)) for data in inputs for number in range(STRETCHES)]
    found: list[str] = []
    slowest = 0.0
    for data in (*suspects, *stretched):
        seconds = target.shortest_cost(data)
        slowest = max(slowest, seconds * STRETCHED / max(len(data), STRETCHED))
        if seconds > allowed(data):
            found.append(f"{seconds * 1000:.0f} ms for {len(data)} bytes: {data[:200]!r}")
    return found, slowest


def record(name: str, figures: dict[str, Any]) -> None:
    """Replace one target's figures in the result file."""
    rows: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    rows[name] = figures
    RESULT.write_text(json.dumps(dict(sorted(rows.items())), indent=2) + "\n")


def main() -> None:
    """Search one target and exit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=600, help="how long to search (default: 600)")
    parser.add_argument("--folder", type=Path, help="keep inputs, findings and log here (default: a temporary folder)")
    asked = parser.parse_args()
    install()
    target = load(asked.target)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        figures: dict[str, Any] = {"seconds": asked.seconds, **search(target, asked.seconds, folder)}
        inputs, edges = corpus.smallest((path.read_bytes() for path in (folder / "inputs").iterdir()), target.check)
        raised = exceptions(target, folder)
        slow, slowest = stalls(target, inputs, folder)
        kept = corpus.keep(target.name, inputs)
    for fault in (*raised[:20], *slow[:20]):
        print("BROKEN", fault)
    figures |= {
        "python": sys.version.split()[0],
        "edges": len(edges),
        "corpus": kept,
        "exceptions": len(raised),
        "stalls": len(slow),
        "slowest_us_per_100kb": round(slowest * 1e6),
        "limit_us_per_100kb": round(STALL_S * 1e6),
    }
    ok = not raised and not slow and not figures["exit_status"] and figures["executions"] > 0
    if ok:
        record(target.name, figures)
    close(f"fuzz-coverage {target.name}", ok=ok, **figures)


if __name__ == "__main__":
    main()

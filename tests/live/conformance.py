"""`just conformance-live`: the probe of canitoolcall, an outside suite, asks a real model bare and behind the gateway.

Eight scenarios, whole and streamed: one call, several, none, nested arguments, a forced call, an answer to a result.
The probe judges the shape of each answer, leaked markers, and whether both ways say the same. A model of 0.5 GB fails
some of them by itself, so the bar is: no error, no leak, at least as many passes as the bare server.

    python -m tests.live.conformance [--model NAME] [--no-keep]
"""

import argparse
import json
from pathlib import Path
from typing import Final

from canitoolcall.probe import ProbeOutcome, ProbeReport, probe

from testkit.llama_models import DEFAULT
from testkit.llama_server import PIN, LlamaServer
from testkit.report import close
from tests.live.gateway import gateway

RESULT: Final = Path(__file__).resolve().parents[2] / "bench/results/conformance-live.json"
PATIENCE_S: Final = 300.0


def main() -> None:
    """Ask, and say what came of it."""
    options = argparse.ArgumentParser(prog="tests.live.conformance")
    options.add_argument("--model", default=DEFAULT)
    options.add_argument("--no-keep", action="store_true")
    chosen = options.parse_args()
    with LlamaServer(chosen.model, remembers=False) as server, gateway(f"{server.url}/v1") as url:
        reports = {"bare": asked(f"{server.url}/v1", chosen.model), "gateway": asked(f"{url}/v1", chosen.model)}
    counts = {name: report.summary() for name, report in reports.items()}
    bad = [each for each in reports["gateway"].outcomes if each.status == "error" or is_leak(each.detail)]
    ok = not bad and counts["gateway"]["pass"] >= counts["bare"]["pass"]
    if not chosen.no_keep:
        kept = {"server": PIN, "model": chosen.model, "summary": counts}
        rows = {name: list(map(_row, report.outcomes)) for name, report in reports.items()}
        RESULT.write_text(json.dumps(kept | rows, indent=1) + "\n")
    close("conformance-live", ok=ok, model=chosen.model, **counts)


def asked(url: str, model: str) -> ProbeReport:
    """Run the probe, one request at a time, and print its table."""
    report = probe(url, model, timeout_s=PATIENCE_S, concurrency=1)
    print(report.render_text(), flush=True)
    return report


def is_leak(detail: str | None) -> bool:
    """Return whether a scenario failed because markup reached the client."""
    return detail is not None and "marker" in detail


def _row(outcome: ProbeOutcome) -> dict[str, object]:
    row = outcome.to_dict()
    return {key: row[key] for key in ("scenario_id", "check", "stream", "status", "detail")}


if __name__ == "__main__":
    main()

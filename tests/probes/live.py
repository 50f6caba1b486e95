"""Probes of real models behind the real server of llama.cpp: each verdict with its evidence.

    python -m tests.probes.live [NAME …]        writes bench/results/probes.json if all models were probed

Two models whose templates have no place for tools, and two whose calls that server returns as text.
"""

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from testkit.llama_server import PIN, LlamaServer
from testkit.report import close
from toolspeak import wires
from toolspeak.engine.probe import probe
from toolspeak.engine.verdict import Verdict
from toolspeak.facts.model import Support
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.prober import drive_probe
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.upstream import HttpUpstream

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results" / "probes.json"
EXPECTED = {
    "smollm2-135m": Support.NONE,
    "tinyllama-1.1b": Support.NONE,
    "qwen2.5-coder-0.5b": Support.LEAKS,
    "qwen2.5-coder-1.5b": Support.LEAKS,
}


@dataclass(frozen=True, slots=True)
class Probed:
    """A model, what was found, and in how many seconds."""

    model: str
    verdict: Verdict
    seconds: float

    @property
    def ok(self) -> bool:
        return self.verdict.tools is EXPECTED[self.model]

    @property
    def row(self) -> dict[str, Any]:
        verdict: dict[str, Any] = msgspec.to_builtins(self.verdict)
        return {"model": self.model, "seconds": round(self.seconds, 1), "ok": self.ok, **verdict}


async def probed(model: str, url: str) -> Probed:
    transport = HttpTransport()
    started = time.monotonic()
    try:
        upstream = HttpUpstream(transport, wires.load("openai_chat"), UpstreamAddress(f"{url}/v1", ()))
        verdict = await drive_probe(probe(model), upstream)
    finally:
        await transport.close()
    return Probed(model, verdict, time.monotonic() - started)


def show(one: Probed) -> None:
    verdict = one.verdict
    more = (("parallel", verdict.parallel), ("streamed", verdict.streamed), ("continues", verdict.continues))
    said = "  ".join(f"{name}={'?' if value is None else 'yes' if value else 'no'}" for name, value in more)
    sure = f"{verdict.tools} ({verdict.confidence:.2f})"
    print(f"\n{one.model:20} {sure:15} {said}  context={verdict.context_tokens}  {one.seconds:.1f} s")
    for found in verdict.evidence:
        print(f"  {found.layer:11} {found.says if found.says is not Support.UNKNOWN else '-':7} {found.reason}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[[], *EXPECTED], metavar="NAME")
    names: list[str] = parser.parse_args().models or [*EXPECTED]
    all_: list[Probed] = []
    for name in names:
        with LlamaServer(name) as server:
            all_.append(asyncio.run(probed(name, server.url)))
        show(all_[-1])
    if {*names} == {*EXPECTED}:
        kept = {"date": time.strftime("%Y-%m-%d"), "server": PIN, "models": [one.row for one in all_]}
        RESULTS.write_text(json.dumps(kept, indent=2) + "\n")
    found = {one.model: one.verdict.tools.value for one in all_}
    wrong = [one.model for one in all_ if not one.ok]
    close("probes", ok=not wrong, verdicts=found, wrong=wrong, seconds=round(sum(one.seconds for one in all_), 1))


if __name__ == "__main__":
    main()

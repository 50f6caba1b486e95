"""`just hosts`: SDKs and frameworks use toolspeak in process, and run a tool with a model that has no tool calling.

Each row has two rounds: the model asks for the tool, the host runs it, the model answers with its result. The lines
that set a host up are those of `docs/in-process.md` and `docs/litellm.md`. Some hosts have checks as well, such as what
they raise when the upstream fails; the closing line counts them apart from the rows. `--only NAME` runs the scripts
whose name has NAME in it; `--save` keeps the rows in bench/results/hosts.json.
"""

import argparse
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testkit.host_environment import python_of
from testkit.report import close
from testkit.scripted_upstream import listening
from tests.hosts.model import MODEL, plain_server

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "bench" / "results" / "hosts.json"
LEAST = 18
TIMEOUT_S = 180
_NEWEST = "hosts"
SCRIPTS = {
    "hosts-openai2": ("openai_sdk", "llama_index_host", "litellm_host", "litellm_checks", "litellm_proxy"),
    _NEWEST: (
        "one_line",
        "openai_sdk",
        "anthropic_sdk",
        "google_genai_sdk",
        "ollama_sdk",
        "langchain_hosts",
        "pydantic_ai_host",
        "openai_agents_host",
        "smolagents_host",
        "haystack_host",
        "inspect_ai_host",
        "notebook",
    ),
}
"""The scripts of each environment."""
SETTINGS = {"LITELLM_LOCAL_MODEL_COST_MAP": "true", "HF_HUB_OFFLINE": "1", "HAYSTACK_TELEMETRY_ENABLED": "false"}
"""No host needs the internet for a row."""


def rows_of(python: str, script: str) -> Iterator[dict[str, Any]]:
    """Run one script against a model server of its own, without keys, proxies or settings of its surroundings."""
    environ = {name: value for name, value in os.environ.items() if name in {"HOME", "PATH"}} | SETTINGS
    path = HERE / "python" / f"{script}.py"
    with listening((MODEL,)) as upstream:
        upstream.answers(plain_server())
        command = [python, "-X", "faulthandler", str(path), upstream.url]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            printed, said = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, said = process.communicate()
            said += f"\nkilled after {TIMEOUT_S} s"
    rows = [json.loads(line) for line in printed.splitlines()]
    yield from rows
    if process.returncode or not rows:
        error = f"it broke off, exit status {process.returncode}: {said[-2000:]}"
        row = {"host": script, "mode": "", "versions": "", "is_tool_run": True, "ok": False}
        yield row | {"error": error, "seconds": 0.0}


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    only: str = options.only
    chosen = {name: [each for each in scripts if only in each] for name, scripts in SCRIPTS.items()}
    pythons = {name: python_of(name) for name, scripts in chosen.items() if scripts}
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for name, python in pythons.items():
        for script in chosen[name]:
            for row in rows_of(python, script):
                rows.append(row)
                mark = "ok" if row["ok"] else "FAIL"
                told = "{:4} {host:38} {mode:44} {seconds:7.3f} {versions} {error}".format(mark, **row)
                print(told.rstrip(), flush=True)
    failed = sum(not row["ok"] for row in rows)
    runs = [row for row in rows if row["is_tool_run"]]
    ok = not failed and (bool(only) or len(runs) >= LEAST)
    seconds = round(time.perf_counter() - started, 1)
    figures = {
        "rows": len(runs),
        "hosts": len({row["host"] for row in runs}),
        "checks": len(rows) - len(runs),
        "failed": failed,
        "seconds": seconds,
    }
    if options.save:
        names = ("host", "mode", "versions", "is_tool_run", "ok")
        kept = [{name: row[name] for name in names} for row in rows]
        RESULTS.write_text(json.dumps({"figures": figures, "rows": kept}, indent=1) + "\n", encoding="utf-8")
    close("hosts", ok=ok, **figures)


if __name__ == "__main__":
    main()

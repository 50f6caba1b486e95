"""`just everyday`: the doctor leaves a model at least as good at everyday requests as it found it.

A real model behind the gateway gets twenty requests with one to three tools, before and after `toolspeak doctor`. None
of the requests, and none of the tools, is in the doctor's own suite. The bar: not fewer right calls after than before,
and `--quick` ends within three minutes.

    just everyday                                  the 0.5B and the 1.5B, quick; writes bench/results/everyday.json
    python -m tests.live.everyday --model NAME     only this one, beside the results of the others
    python -m tests.live.everyday --full           the whole trial instead of --quick
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from testkit.everyday import REQUESTS, TOOLS
from testkit.llama_models import MODELS
from testkit.llama_server import PIN, LlamaServer
from testkit.report import close
from tests.live.gateway import gateway

RESULT: Final = Path(__file__).resolve().parents[2] / "bench/results/everyday.json"
BOTH: Final = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
PATIENCE_S: Final = 600.0
QUICK_S: Final = 180.0
STARTS_S: Final = 15.0
"""For the interpreter and the server's metadata, on a machine with much else to do."""


def main() -> None:
    """Ask, examine, ask again, and say what came of it."""
    options = argparse.ArgumentParser(prog="tests.live.everyday")
    options.add_argument("--model", choices=MODELS)
    options.add_argument("--full", action="store_true")
    chosen = options.parse_args()
    kept: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {"models": {}}
    names = (chosen.model,) if chosen.model else BOTH
    for name in names:
        kept["models"].setdefault(name, {})["full" if chosen.full else "quick"] = examined(name, full=chosen.full)
        RESULT.write_text(json.dumps({"server": PIN, **kept}, indent=1, ensure_ascii=False) + "\n")
    found = {name: each for name in names for each in [kept["models"][name]["full" if chosen.full else "quick"]]}
    ok = all(each["after"] >= each["before"] and each["in_time"] for each in found.values())
    short = ("before", "after", "doctor_seconds", "kept")
    close("everyday", ok=ok, requests=len(REQUESTS), **{n: {key: e[key] for key in short} for n, e in found.items()})


def examined(model: str, *, full: bool) -> dict[str, Any]:
    """Return the right calls before and after the doctor, with what it said."""
    with tempfile.TemporaryDirectory() as state, LlamaServer(model) as server:
        os.environ["XDG_STATE_HOME"] = state  # for the gateway and the doctor, which are children
        with gateway(f"{server.url}/v1") as url:
            before = [right(url, model, number) for number in range(len(REQUESTS))]
        command = [sys.executable, "-m", "toolspeak", "doctor", model, "--upstream", f"{server.url}/v1", "--json"]
        began = time.monotonic()
        told = subprocess.run([*command, *([] if full else ["--quick"])], check=False, capture_output=True, text=True)
        seconds = time.monotonic() - began
        if not told.stdout:
            raise SystemExit(f"the doctor failed: {told.stderr}")
        said = json.loads(told.stdout)
        say(f"doctor: {seconds:.0f} s, {said['verdict']}")
        # Without a profile the gateway does what it did before: the same requests would get the same answers.
        after = before
        if said["saved"]:
            with gateway(f"{server.url}/v1") as url:
                after = [right(url, model, number) for number in range(len(REQUESTS))]
    return {
        "before": sum(before),
        "after": sum(after),
        "doctor_seconds": round(seconds, 1),
        "in_time": full or seconds <= QUICK_S + STARTS_S,
        "kept": said["winner"],
        "verdict": said["verdict"],
        "forms": {each["name"]: [each["right"], each["asked"]] for each in said["forms"]},
        "wrong_before": [REQUESTS[number][0] for number, good in enumerate(before) if not good],
        "wrong_after": [REQUESTS[number][0] for number, good in enumerate(after) if not good],
    }


def right(url: str, model: str, number: int) -> bool:
    """Ask one request, and return whether exactly the right call came."""
    words, names, values = REQUESTS[number]
    body = {
        "model": model,
        "messages": [{"role": "user", "content": words}],
        "tools": [_tool(name) for name in sorted(names)],
        "max_tokens": 160,
        "temperature": 0,
    }
    message: dict[str, Any] = _posted(url, body)["choices"][0]["message"]
    made: list[dict[str, Any]] = message.get("tool_calls") or []
    calls: list[tuple[str, str]] = [(each["function"]["name"], each["function"]["arguments"]) for each in made]
    key = TOOLS[names[0]][1]
    good = len(calls) == 1 and calls[0][0] == names[0] and _said(json.loads(calls[0][1]).get(key)) in values
    say(f"{number + 1:2} {'right' if good else 'wrong'}  {words}  {calls or (message.get('content') or '')[:80]!r}")
    return good


def _said(value: object) -> str:
    return str(value).casefold().strip(" .;\"'")


def _tool(name: str) -> dict[str, Any]:
    description, key = TOOLS[name]
    schema = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _posted(url: str, body: dict[str, Any]) -> dict[str, Any]:
    split = urlsplit(url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def say(line: str) -> None:
    """Show how far it is."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""`just constraint`: llama.cpp's own server takes our grammars, and keeps to them.

    just constraint                 both models, writes bench/results/constraint.json
    just constraint --no-keep       writes nothing

First every grammar: those of all tools in `testkit/golden/requests.jsonl`, and of schemas with one odd feature each. A
server that cannot read a grammar may go on without one and say nothing, so that each is proven by what it forces. Then
answers at a high temperature, which make small models stumble: without a constraint, and with one. It fails if a
grammar is not taken, if a constrained call is bad, or if the constraint is reported as ignored.
"""

import argparse
import http.client
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from testkit.llama_server import PIN, LlamaServer
from testkit.report import close, progress
from testkit.wire_requests import REQUESTS
from tests.live.schemas import ODD
from toolspeak import Client
from toolspeak.dialects import load
from toolspeak.engine.constraint import AllowedCalls, grammar
from toolspeak.engine.prompt import writer_of
from toolspeak.engine.settings import Mode, Settings
from toolspeak.errors import BadRequest, BadSchema, UpstreamFailed
from toolspeak.facts.model import Constrain
from toolspeak.ir.complaint import Problem
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Sampling
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.toolset.toolset import ToolSet
from toolspeak.wires import load as load_wire

ROOT = Path(__file__).parent.parent.parent
RESULT = ROOT / "bench" / "results" / "constraint.json"
SEEDS = (1, 2)
WARM = 1.2
FORMS = (("hermes", True), ("fenced", False))
"""Dialects, and whether the tool choice demands a call."""
SMALL = FORMS[:1]
BEGINS = '<tool_call>\n{"name": "'
MOST_TOKENS = 80
TASKS = (
    ("What is the weather in Oslo for the next 3 days, in celsius?", "get_weather"),
    ("Write a mail to anna@example.com and ben@example.com: the meeting is at 10. It is urgent.", "send_mail"),
    ("Book a table for 4 at Nobis, tomorrow at 19:30, outside if possible.", "book_table"),
)
TOOLS = (
    Tool(
        "get_weather",
        "Get the weather of a city.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
            },
            "required": ["city", "unit", "days"],
        },
    ),
    Tool(
        "send_mail",
        "Send a mail.",
        {
            "type": "object",
            "properties": {
                "to": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5},
                "text": {"type": "string", "minLength": 1},
                "urgent": {"type": "boolean"},
            },
            "required": ["to", "text", "urgent"],
        },
    ),
    Tool(
        "book_table",
        "Book a table in a restaurant.",
        {
            "type": "object",
            "properties": {
                "place": {"type": "string"},
                "guests": {"type": "integer", "minimum": 1, "maximum": 20},
                "seat": {
                    "type": "object",
                    "properties": {"outside": {"type": "boolean"}, "kind": {"enum": ["bar", "table", "booth"]}},
                    "required": ["outside", "kind"],
                },
            },
            "required": ["place", "guests", "seat"],
        },
    ),
)


@dataclass
class Count:
    """What came of some answers."""

    answers: int = 0
    begun: int = 0
    """Answers with an attempt to call."""
    valid: int = 0
    """Those whose attempts were all right."""
    cut: int = 0
    """Those that were cut off by the limit of tokens; they count neither way."""
    ignored: int = 0
    problems: list[str] = field(default_factory=list[str])


def main() -> None:
    """Run, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-keep", action="store_true")
    keeps = not parser.parse_args().no_keep
    report: dict[str, Any] = {"server": PIN, "temperature": WARM, "seeds": len(SEEDS), "models": {}}
    with tempfile.TemporaryDirectory() as folder:
        with LlamaServer("smollm2-135m", log=Path(folder) / "server.log") as server:
            report["grammars"], refused = _grammars(server)
            report["models"][server.model] = _answers(server, SMALL)
        with LlamaServer("qwen2.5-coder-0.5b", log=Path(folder) / "server.log") as server:
            report["models"][server.model] = _answers(server, FORMS)
    rows = [row for rows in report["models"].values() for row in rows]
    bad = [row for row in rows if row["constraint"] != "off" and (row["valid"] < row["begun"] or row["ignored"])]
    ok = not refused and not bad and all(row["begun"] for row in rows if row["forced"] and row["constraint"] != "off")
    if keeps:
        RESULT.write_text(json.dumps(report, indent=1) + "\n")
    figures = {
        name: f"{sum(row['valid'] for row in kind)}/{sum(row['begun'] for row in kind)}"
        for name, kind in (
            ("constrained", [row for row in rows if row["constraint"] != "off"]),
            ("control", [row for row in rows if row["constraint"] == "off"]),
        )
    }
    close("constraint", ok=ok, grammars=report["grammars"], refused=refused[:5], **figures)


# ---------------------------------------------------------------- grammars


def _grammars(server: LlamaServer) -> tuple[dict[str, int], list[str]]:
    """Try every grammar; return how many there are, and which were not taken."""
    found = list(_tool_sets())
    shape = writer_of(load("hermes")).shape
    assert shape is not None
    refused: list[str] = []
    for done, (name, tools) in enumerate(found, start=1):
        progress(done, len(found), "grammar")
        text = grammar(shape, AllowedCalls(tools, tools.names, 1, forced=True)).gbnf
        status, said = _said(server, text)
        if status != http.client.OK or not said or not BEGINS.startswith(said[: len(BEGINS)]):
            refused.append(f"{name}: HTTP {status} {said[:80]!r}")
    return {"sets": len(found), "schemas": sum(len(tools) for _, tools in found)}, refused


def _tool_sets() -> Iterator[tuple[str, ToolSet]]:
    for name, schema in ODD.items():
        yield name, ToolSet.of([Tool("odd", parameters=schema)])
    seen: set[str] = set()
    for line in REQUESTS.read_text("utf-8").splitlines():
        row: JsonObject = json.loads(line)
        try:
            request = load_wire(str(row["wire"])).decode_request(json.dumps(row["body"]).encode(), str(row["path"]))
            tools = ToolSet.of(request.tools)
        except (BadRequest, BadSchema):
            continue
        key = json.dumps([[tool.name, tool.parameters] for tool in request.tools])
        if request.tools and key not in seen:
            seen.add(key)
            yield str(row["id"]), tools


def _said(server: LlamaServer, text: str) -> tuple[int, str]:
    split = urlsplit(server.url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=120)
    body = {"messages": [{"role": "user", "content": "Go."}], "max_tokens": 4, "grammar": text, "temperature": WARM}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    answer: dict[str, Any] = json.loads(response.read() or b"{}")
    connection.close()
    if response.status != http.client.OK:
        return response.status, str(answer.get("error"))
    return response.status, str(answer["choices"][0]["message"]["content"])


# ---------------------------------------------------------------- answers


def _answers(server: LlamaServer, forms: Sequence[tuple[str, bool]]) -> list[dict[str, Any]]:
    """Ask without a constraint and with one, with a free choice and with one that demands a call."""
    rows: list[dict[str, Any]] = []
    plans = [
        (dialect, constraint, forced) for dialect, forced in forms for constraint in (Constrain.OFF, Constrain.TEXT)
    ]
    plans.append(("steps_json", Constrain.JSON, False))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toolspeak.toml"
        path.write_text(f'[upstreams.llamacpp]\nurl = "{server.url}/v1"\n')
        with Client(config=path) as client:
            for done, (dialect, constraint, forced) in enumerate(plans, start=1):
                settings = Settings(Mode.FORCE, dialect=dialect, constraint=constraint, retries=0)
                count = _count(client, settings, forced=forced)
                rows.append({"dialect": dialect, "constraint": constraint, "forced": forced, **vars(count)})
                progress(done, len(plans), server.model)
    return rows


def _count(client: Client, settings: Settings, *, forced: bool) -> Count:
    count = Count()
    choice = ToolChoice(ChoiceMode.REQUIRED if forced else ChoiceMode.AUTO, parallel=False)
    for ask, _ in TASKS:
        for seed in SEEDS:
            sampling = Sampling(max_tokens=MOST_TOKENS, temperature=WARM, seed=seed)
            count.answers += 1
            try:
                answer = client.chat(ask, TOOLS, choice=choice, sampling=sampling, settings=settings)
            except UpstreamFailed as error:
                cut = "cut off" in str(error) or "not complete" in str(error)
                count.cut += cut
                count.begun += not cut and "cannot be used" in str(error)
                count.problems.append(str(error)[:120])
                continue
            bad = [complaint for complaint in answer.complaints if complaint.problem is not Problem.TRUNCATED]
            count.cut += len(bad) < len(answer.complaints)
            count.begun += bool(bad or answer.calls)
            count.valid += bool(answer.calls and not bad)
            count.ignored += answer.outcome.constraint == "ignored"
            count.problems += [f"{complaint.problem}: {complaint.detail}"[:120] for complaint in bad]
    return count


if __name__ == "__main__":
    main()

"""`just example-run`: a real model behind `toolspeak up` works on small file tasks, in several forms.

    just example-run                    two models, all forms; writes docs/example-run.md
    just example-run --model qwen2.5-coder-0.5b --form default --task notes
    just example-run --page             writes the page from what is kept, and asks nobody

The run talks to the model's server that `toolspeak up` keeps. Each finished run is a line in
~/.cache/toolspeak/example-run.jsonl, and what is there is not asked again; `--anew` asks again.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from testkit.llama_models import cache_folder, path_of
from testkit.report import close
from tests.live.example_page import Line, kept, page
from tests.live.upped import ROOT, upped
from toolspeak.agent.runs.preparation import prepare_run
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import Work, run_inline
from toolspeak.config import Config, Options, with_options
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import Ending
from toolspeak.engine.journal import compact_json
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Sampling
from toolspeak.runtime.http_transport import HttpTransport

MODELS = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
ROUNDS, MAX_TOKENS, LIMIT_S = 8, 400, 600.0
READ, END = "read_file", "final_output"
SAMPLING = Sampling(max_tokens=MAX_TOKENS, temperature=0.0, seed=1)
KEPT = cache_folder() / "example-run.jsonl"
CARE: JsonObject = {
    "drop_unrelated_calls": True,
    "request_missing_calls": True,
}
"""Without `confirm_tool_fit`: the first step of an agent answers no question, and the model says no to it."""
HERMES: JsonObject = {"mode": "force", "dialect": "hermes"}
FENCED: JsonObject = {"mode": "force", "dialect": "fenced"}
FORMS: dict[str, JsonObject] = {
    "default": {},
    "default drop_unrelated_calls": {"drop_unrelated_calls": True},
    "hermes": HERMES,
    "hermes guardrails": {**HERMES, **CARE},
    "hermes constraint=text": {**HERMES, "constraint": "text"},
    "fenced": FENCED,
    "fenced constraint=text guardrails": {**FENCED, "constraint": "text", **CARE},
}
BIG, SMALL = MODELS
SHOWN = (
    *((BIG, task, "default", "files") for task in ("notes", "scores", "change", "both", "spelling")),
    (SMALL, "notes", "default", "files"),
    (SMALL, "scores", "default", "files"),
)
"""Runs that the page shows whole."""
TOOLS = {"files": ("files",), "files, final_output": ("files", "final_output")}


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked, the files that are there before, and whether it was done: by the files, and by the answer.

    Each asks to read a file, so that an answer without that is a guess.
    """

    asks: str
    before: dict[str, str]
    did: Callable[[dict[str, str]], bool]
    says: Callable[[str], bool]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def _json(text: str) -> object:
    with suppress(ValueError):
        return json.loads(text)
    return None


TASKS = {
    "notes": Task(
        "Make a file notes.txt with three lines: apples, bread, milk. Then read it, and answer how many lines it has.",
        {},
        lambda files: _lines(files.get("notes.txt", "")) == ["apples", "bread", "milk"],
        lambda text: "3" in text or "three" in text.lower(),
    ),
    "scores": Task(
        "Read scores.txt. Write the name of the player with the most points to winner.txt, and tell me who it is.",
        {"scores.txt": "Ada 31\nBen 47\nCleo 28\n"},
        lambda files: _lines(files.get("winner.txt", "")) in (["Ben"], ["Ben 47"]),
        lambda text: "Ben" in text,
    ),
    "change": Task(
        "In settings.ini, change the port from 8080 to 9090. Then read the file again and tell me what its host is.",
        {"settings.ini": "[server]\nhost = lynx.example\nport = 8080\n"},
        lambda files: _lines(files.get("settings.ini", "")) == ["[server]", "host = lynx.example", "port = 9090"],
        lambda text: "lynx.example" in text,
    ),
    "both": Task(
        "Read first.txt and second.txt. Write both.txt with the lines of first.txt and then those of second.txt, "
        "and tell me how many lines both.txt has.",
        {"first.txt": "red\ngreen\n", "second.txt": "blue\nwhite\nblack\n"},
        lambda files: _lines(files.get("both.txt", "")) == ["red", "green", "blue", "white", "black"],
        lambda text: "5" in text or "five" in text.lower(),
    ),
    "spelling": Task(
        "letter.txt spells the word 'receive' wrong in one place. Correct it, and tell me "
        "to whom the letter is written.",
        {"letter.txt": "Dear Mrs Holm,\nyou will recieve the parcel on Monday.\nYours, Ida\n"},
        lambda files: (
            _lines(files.get("letter.txt", ""))
            == ["Dear Mrs Holm,", "you will receive the parcel on Monday.", "Yours, Ida"]
        ),
        lambda text: "Holm" in text,
    ),
}
UNSEEN = {
    "program": Task(
        "Write hello.py, a Python program that prints Hello, Mars. Then read it, and tell me how many lines it has.",
        {},
        lambda files: re.sub(r"[^a-z,]", "", files.get("hello.py", "").lower()).count("printhello,mars") == 1,
        lambda text: bool(re.search(r"\b(1|one|single)\b", text.lower())),
    ),
    "cheapest": Task(
        "Read prices.csv. Write the name of the cheapest item to cheapest.txt, and tell me its price.",
        {"prices.csv": "item,price\nlamp,24\nchair,39\nclock,17\n"},
        lambda files: [line.split(",")[0] for line in _lines(files.get("cheapest.txt", ""))] == ["clock"],
        lambda text: "17" in text,
    ),
    "header": Task(
        "Put the line '# Copyright Lynx' at the top of main.py and keep everything else. Then read the file, and tell "
        "me the name of its function.",
        {"main.py": "def compute_tax(amount):\n    return amount * 0.19\n"},
        lambda files: (
            [line.rstrip() for line in files.get("main.py", "").strip().splitlines() if line.strip()]
            == ["# Copyright Lynx", "def compute_tax(amount):", "    return amount * 0.19"]
        ),
        lambda text: "compute_tax" in text,
    ),
    "search": Task(
        "Exactly one of the log files in this folder has the word ERROR. Find out which, write its name to found.txt, "
        "and tell me the name.",
        {"app.log": "started\nready\n", "db.log": "started\nERROR disk full\n", "web.log": "started\nGET / 200\n"},
        lambda files: _lines(files.get("found.txt", "")) == ["db.log"],
        lambda text: "db.log" in text,
    ),
    "flag": Task(
        "In config.json, set debug to true and leave everything else as it is. Then read the file again, and tell me "
        "the version.",
        {"config.json": '{\n  "version": "4.2.1",\n  "debug": false,\n  "workers": 3\n}\n'},
        lambda files: _json(files.get("config.json", "")) == {"version": "4.2.1", "debug": True, "workers": 3},
        lambda text: "4.2.1" in text,
    ),
}
"""Tasks of the same kind that no prompt or tool was shaped on."""
ALL_TASKS = {**TASKS, **UNSEEN}


def attempt(url: str, model: str, task: str, form: str, tools: str) -> Line:
    """Let a run do a task in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ALL_TASKS[task].before.items():
            Path(folder, name).write_text(text)
        chosen, asks = TOOLS[tools], ALL_TASKS[task].asks
        spec = Spec(asks, model, "", chosen, folder, approval=Approval.AUTO, rounds=ROUNDS, settings=FORMS[form])
        began = time.monotonic()
        plan, ending = asyncio.run(_worked(spec, url))
        seconds = time.monotonic() - began
        files = {path.name: path.read_text(errors="replace") for path in Path(folder).iterdir() if path.is_file()}
    what: dict[str, Any] = {"model": model, "task": task, "form": form, "tools": tools, "plan": plan}
    return Line(**what, **_found(ALL_TASKS[task], ending, files), files=files, seconds=round(seconds, 1))


async def _worked(spec: Spec, url: str) -> tuple[str, Ending | None]:
    """Work on it; return the plan of its first turn, and its end."""
    transport = HttpTransport()
    config = with_options(Config(), Options(upstream=url, preset="llamacpp"))
    try:
        async with prepare_run("example", spec, config, assemble(config, transport)) as work:
            return work.route.plan(work.task.request, work.settings).line, await _ended(work)
    finally:
        await transport.close()


async def _ended(work: Work) -> Ending | None:
    request = replace(work.task.request, sampling=SAMPLING)
    with suppress(TimeoutError):
        async with asyncio.timeout(LIMIT_S):
            return await run_inline(replace(work, task=replace(work.task, request=request)))
    return None


def _found(task: Task, ending: Ending | None, files: dict[str, str]) -> dict[str, Any]:
    if ending is None:
        late: dict[str, Any] = {"status": "stopped", "text": "", "rounds": [], "tokens": [0, 0]}
        return {"did": task.did(files), "says": False, "reason": f"stopped after {LIMIT_S:g} s", **late}
    return {
        "did": task.did(files),
        "says": task.says(ending.text) and READ in _seen(ending),
        "status": ending.status.value,
        "text": ending.text,
        "reason": ending.reason,
        "rounds": compact_json(ending.kept)["rounds"],
        "tokens": [ending.usage.input_tokens, ending.usage.output_tokens],
    }


def _seen(ending: Ending) -> set[str]:
    """Return the tools whose results the model had before its last words: not those of the round that ended the run."""
    rounds = ending.kept.rounds
    last = rounds[-1].results if rounds else ()
    ended = any(result.name == END and not result.is_error for result in last)
    return {call.name for each in (rounds[:-1] if ended else rounds) for call in each.calls}


def wanted(options: argparse.Namespace, model: str) -> Iterator[tuple[str, str, str]]:
    """Give the runs that are to be done."""
    done = {} if options.anew else kept(KEPT)
    for form in options.form or FORMS:
        for tools in options.tools or TOOLS:
            for task in options.task or TASKS:
                if (model, task, form, tools) not in done:
                    yield task, form, tools


def run(options: argparse.Namespace, model: str) -> None:
    """Do what is not done yet with one model."""
    todo = list(wanted(options, model))
    if not todo:
        return
    log = cache_folder() / "example-run.log"
    with upped([path_of(model)], log, "--context", "8192") as up, KEPT.open("a") as out:
        for task, form, tools in todo:
            line = attempt(up.behind, model, task, form, tools)
            out.write(json.dumps(asdict(line), ensure_ascii=False) + "\n")
            out.flush()
            judged = f"{'did it' if line.did else 'no file'}, {'answered' if line.says else 'no answer'}"
            print(f"{model} {task} [{tools}] {form}: {judged}, {line.status}, {line.seconds} s", flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--task", action="append", choices=ALL_TASKS)
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--tools", action="append", choices=TOOLS)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    for model in () if options.page else options.model or MODELS:
        run(options, model)
    lines = list(kept(KEPT).values())
    (ROOT / "docs" / "example-run.md").write_text(
        page(lines, {name: task.asks for name, task in ALL_TASKS.items()}, SHOWN)
    )
    best = [line for line in lines if line.right and line.model == MODELS[0]]
    close("example-run", ok=bool(best), runs=len(lines), right=sum(line.right for line in lines))


if __name__ == "__main__":
    main()

"""`just tool-fit`: how likely a model says that a tool does not fit, on development tasks (CHK-14).

    just tool-fit                                  the 0.5B and the 1.5B, 40 tasks of each set
    just tool-fit --model qwen2.5-coder-1.5b --tasks 20
    just tool-fit --replay                         the questions that have answers in the repository: asks no model

The question of `confirm_tool_fit` is asked about the right tool of tasks that need a call, and about the tool of tasks
that need none. The result shows what each limit of `unfit_probability` would reject. Only development tasks are asked.

The right tools are counted in two groups. BFCL words its requests like its tools; the twenty everyday requests of
`testkit/everyday.py` and the first messages of our development conversations are worded as people speak. A limit that
looks free on the first group is not on the second.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.accuracy import data, kept
from bench.accuracy.answers import ARCHIVE, Answers
from bench.accuracy.relay import Relay
from bench.accuracy.run import build_of, started
from bench.accuracy.speak import Where
from bench.accuracy.split import Split
from bench.accuracy.talks import TALKS
from testkit.everyday import REQUESTS, TOOLS
from testkit.llama_models import MODELS
from testkit.report import close
from toolspeak.engine.guardrails.tool_fit import TOP_TOKENS, fit_question, no_probability
from toolspeak.ir.event import Finished
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.runtime.http_transport import HttpTransport

RESULTS = Path(__file__).parents[1] / "results" / "tool-fit.json"
BOTH = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
IRRELEVANT = "irrelevance"
SETS = (IRRELEVANT, "simple_python", "multiple")
LIMITS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
ASKER = "tool-fit"
EVERYDAY, TALK = "everyday", "conversation"
FIRST_TOOLS = {
    "warm kitchen": "read_room",
    "coldest room": "read_room",
    "two rooms": "set_target",
    "a day's events": "list_events",
    "cancel one": "list_events",
    "move an event": "cancel_event",
    "read a file": "list_files",
    "copy a file": "read_file",
    "tidy up": "delete_file",
    "an open order": "order_status",
    "a transfer": "get_balance",
    "too much": "transfer",
    "two balances": "get_balance",
    "lights out": "list_lights",
    "light up": "switch_light",
    "a shopping list": "add_item",
    "no tool needed": "show_list",
    "a message": "find_contact",
}
"""The right tool for the first message of 18 development conversations; the other two were not asked about."""


def worded_by_people() -> list[data.Task]:
    """Return the everyday requests and the first messages of conversations, each with its right tool."""
    found: list[data.Task] = []
    for words, names, _ in REQUESTS:
        description, parameter = TOOLS[names[0]]
        schema: JsonObject = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
        found.append(_task(EVERYDAY, words, words, Tool(names[0], description, schema)))
    for talk in TALKS:
        if name := FIRST_TOOLS.get(talk.id):
            tool = next(tool for tool in talk.world.tools if tool.name == name)
            found.append(_task(TALK, talk.id, talk.steps[0].user, tool))
    return found


def _task(group: str, id: str, words: str, tool: Tool) -> data.Task:
    wanted = (data.Wanted(tool.name, {}, {}),)
    return data.Task(id, group, (Message(Role.USER, (Text(words),)),), (tool,), wanted, {tool.name: tool.name})


def tool_of(task: data.Task) -> Tool:
    """Return the tool that the right call names, or the first one where no call is right."""
    wanted = {called.name for called in task.wanted}
    return next((tool for tool in task.tools if tool.name in wanted), task.tools[0])


async def chance(task: data.Task, where: Where) -> float | None:
    """Return how likely the model says no to a task's tool; None if it says neither yes nor no."""
    request = Request(where.model, task.messages, task.tools, sampling=where.sampling)
    question = replace(fit_question(request, tool_of(task)), top_tokens=TOP_TOKENS)
    events = [event async for batch in where.upstream().open(question) for event in batch]
    last = events[-1] if events else None
    return no_probability(last.first_token) if isinstance(last, Finished) else None


async def asked(model: str, url: str, tasks: Sequence[data.Task], answers: Answers) -> list[dict[str, Any]]:
    """Send the question for all tasks, one after the other; leave out tasks without an answer."""
    found: list[dict[str, Any]] = []
    transport = HttpTransport()
    try:
        async with Relay(url, answers.server, answers) as relay:
            where = Where(relay.url(ASKER), model, Sampling(temperature=0.0, seed=data.SEED), transport)
            for number, task in enumerate(tasks):
                no = await chance(task, where)
                if relay.settle(ASKER).missing:
                    continue
                found.append({"set": task.set, "task": task.id, "no": None if no is None else round(no, 4)})
                print(f"{model} {number + 1}/{len(tasks)} {task.id} {no}", flush=True)
    finally:
        await transport.close()
    return found


def figures(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what each limit rejects of the irrelevant and of the right tools. Other answers reject none."""
    people = (EVERYDAY, TALK)
    groups = {
        "irrelevant": [row["no"] or 0.0 for row in found if row["set"] == IRRELEVANT],
        "right": [row["no"] or 0.0 for row in found if row["set"] not in (IRRELEVANT, *people)],
        "right_as_people_speak": [row["no"] or 0.0 for row in found if row["set"] in people],
    }
    return {
        **{name: len(group) for name, group in groups.items()},
        "area": round(area(groups["irrelevant"], groups["right"] + groups["right_as_people_speak"]), 3),
        "rejected": {str(limit): [sum(no >= limit for no in group) for group in groups.values()] for limit in LIMITS},
    }


def area(irrelevant: Sequence[float], right: Sequence[float]) -> float:
    """Return how often an irrelevant tool has a higher probability than a right one: 0.5 is chance, 1 is certainty."""
    pairs = [(one > other) + (one == other) / 2 for one in irrelevant for other in right]
    return sum(pairs) / len(pairs) if pairs else 0.0


def measured(model: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure one model."""
    samples = [data.sample(name, options.tasks, data.SEED, Split.DEVELOPMENT) for name in SETS]
    tasks = [*(task for together in zip(*samples, strict=False) for task in together), *worded_by_people()]
    answers = Answers(model, options.answers, ARCHIVE)
    try:
        with started(model, 1, replay=options.replay) as url:
            if url:
                answers.asked_of(build_of(url, model))
            return asyncio.run(asked(model, url, tasks, answers))
    finally:
        answers.close()


def main() -> None:
    """Measure, save, and exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--tasks", type=int, default=40, help="of each set")
    parser.add_argument("--replay", action="store_true", help="ask no server")
    parser.add_argument("--answers", type=Path, default=kept.FOLDER, help="the folder that keeps the server's answers")
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for model in [options.model] if options.model else BOTH:
        found = measured(model, options)
        results[model] = {**figures(found), "tasks": found}
        if not options.replay:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    shown = {model: {key: value for key, value in each.items() if key != "tasks"} for model, each in results.items()}
    close("tool-fit", ok=all(each["irrelevant"] and each["right"] for each in results.values()), **shown)


if __name__ == "__main__":
    main()

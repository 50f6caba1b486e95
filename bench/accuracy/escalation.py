"""`just escalation`: a small model, a larger one, and the small one that escalates to the larger one (`escalate_to`).

    just escalation                    20 held-out tasks of each set, on the 0.5B and the 1.5B
    just escalation --replay           the tasks that have answers in the repository: asks no model
    just escalation --form 'hermes guardrails' --large-form fenced

Each task is sent three times: to the small model, to the larger one, and to the small one that may escalate. A task
counts if all three are done. Requests and tokens are counted for each model, since those of the larger cost more.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.accuracy import data, kept
from bench.accuracy.answers import ARCHIVE, Answers
from bench.accuracy.forms import Form, form_of, profiles_of
from bench.accuracy.intervals import Estimate, average
from bench.accuracy.relay import Account, Relay
from bench.accuracy.run import MAX_TOKENS, build_of, started
from bench.accuracy.score import score
from bench.accuracy.speak import Ours, Where
from bench.accuracy.split import Split
from testkit.llama_models import MODELS
from testkit.report import close
from toolspeak.ir.request import Sampling
from toolspeak.runtime.http_transport import HttpTransport

RESULTS = Path(__file__).parents[1] / "results" / "escalation.json"
SMALL, LARGE, BOTH = "small", "large", "escalated"
TASKS = 20


@dataclass(frozen=True, slots=True)
class Done:
    """One task in one way: whether it is solved, and what each model used for it."""

    set: str
    task: str
    way: str
    right: bool
    small: Account
    large: Account

    @property
    def escalated(self) -> bool:
        return self.way == BOTH and self.large.requests > 0


@dataclass(frozen=True, slots=True)
class Model:
    """A model, the relay before its server, and the form of its requests."""

    name: str
    relay: Relay
    form: Form

    def speaker(self, who: str, transport: HttpTransport, seed: int) -> Ours:
        """Return the speaker for this model; its usage is charged to the account `who`."""
        sampling = Sampling(max_tokens=MAX_TOKENS, temperature=0.0, seed=seed)
        where = Where(self.relay.url(who), self.name, sampling, transport)
        assert self.form.settings is not None, "a form of others cannot escalate"
        return Ours(where, self.form.settings, self.form.tools)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both models."""

    small: Model
    large: Model
    transport: HttpTransport
    seed: int

    async def ask(self, task: data.Task, way: str) -> Done | None:
        """Send one task in one way; None if an answer is missing and there is no server."""
        who = f"{way}-{task.id}"
        large = self.large.speaker(who, self.transport, self.seed)
        alone = self.small.speaker(who, self.transport, self.seed)
        speaker = {SMALL: alone, LARGE: large, BOTH: replace(alone, stronger=large)}[way]
        said = await speaker.ask(task.messages, task.tools)
        used = self.small.relay.settle(who), self.large.relay.settle(who)
        if used[0].missing or used[1].missing:
            return None
        right = score(task, said.calls).right and not said.failure
        return Done(task.set, task.id, way, right, *used)


async def asked(pair: Pair, tasks: Sequence[data.Task], until: float) -> list[Done]:
    """Send all tasks in all three ways until the time is over; a task that is incomplete in one way is left out."""
    found: list[Done] = []
    for number, task in enumerate(tasks):
        if time.monotonic() > until:
            break
        done = [await pair.ask(task, way) for way in (SMALL, LARGE, BOTH)]
        whole = [each for each in done if each]
        if len(whole) == len(done):
            found += whole
        print(f"{number + 1}/{len(tasks)} {task.id}: {[each.right if each else None for each in done]}", flush=True)
    return found


# ---------------------------------------------------------------- the figures


def figures(found: Sequence[Done]) -> dict[str, Any]:
    """Return the share of solved tasks and the cost of a task, for each way."""
    return {way: figures_of([done for done in found if done.way == way]) for way in (SMALL, LARGE, BOTH)}


def figures_of(found: Sequence[Done]) -> dict[str, Any]:
    """Return the figures of one way."""
    sets = {name: [float(done.right) for done in found if done.set == name] for name in data.SETS}
    solved = average(sets)
    return {
        "tasks": len(found),
        "solved": _estimate(solved),
        "sets": {name: round(100 * sum(values) / len(values), 1) for name, values in sets.items() if values},
        "escalated": sum(done.escalated for done in found),
        "escalated_and_solved": sum(done.escalated and done.right for done in found),
        "small": cost([done.small for done in found]),
        "large": cost([done.large for done in found]),
    }


def cost(used: Sequence[Account]) -> dict[str, float]:
    """Return what one task costs of one model, on average."""
    count = max(1, len(used))
    return {
        "requests": round(sum(each.requests for each in used) / count, 2),
        "input_tokens": round(sum(each.input_tokens for each in used) / count),
        "output_tokens": round(sum(each.output_tokens for each in used) / count),
    }


def difference(found: Sequence[Done], way: str, other: str) -> dict[str, float] | None:
    """Return by how much one way solves more than another, on the same tasks."""
    by_way = {(done.way, done.task): done for done in found}
    sets = {
        name: [
            float(done.right) - float(by_way[other, done.task].right)
            for done in found
            if done.way == way and done.set == name
        ]
        for name in data.SETS
    }
    return _estimate(average(sets, least=-1.0))


def _estimate(found: Estimate | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {key: round(100 * value, 1) for key, value in asdict(found).items() if key != "count"}


def faults(found: Sequence[Done]) -> list[str]:
    """Return the faults: a way that was not measured, or requests to the larger model without need."""
    shown = figures(found)
    by_way = {(done.way, done.task): done for done in found}
    changed = [
        done.task
        for done in found
        if done.way == BOTH and not done.escalated and done.right != by_way[SMALL, done.task].right
    ]
    checks = {
        "no task was done in all three ways": bool(found),
        f"without an escalation these tasks went differently: {changed}": not changed,
        "the larger model was asked in every task": shown[BOTH]["escalated"] < shown[BOTH]["tasks"],
    }
    return [fault for fault, holds in checks.items() if not holds]


# ---------------------------------------------------------------- the run


@asynccontextmanager
async def opened(name: str, url: str, form: str, folder: Path) -> AsyncGenerator[Model]:
    """Yield a model with its kept answers."""
    answers = Answers(name, folder, ARCHIVE)
    try:
        if url:
            answers.asked_of(build_of(url, name))
        async with Relay(url, answers.server, answers) as relay:
            yield Model(name, relay, form_of(form, profiles_of(name)))
    finally:
        answers.close()


async def measured(options: argparse.Namespace, urls: tuple[str, str]) -> list[Done]:
    """Run the requested tasks."""
    samples = [data.sample(name, options.tasks, options.seed, Split.HELD_OUT) for name in data.SETS]
    tasks = [sample[place] for place in range(options.tasks) for sample in samples if place < len(sample)]
    transport = HttpTransport()
    until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        small = await stack.enter_async_context(opened(options.small, urls[0], options.form, options.answers))
        large = await stack.enter_async_context(opened(options.large, urls[1], options.large_form, options.answers))
        return await asked(Pair(small, large, transport, options.seed), tasks, until)


def main() -> None:
    """Measure, write the results, and exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", default="qwen2.5-coder-0.5b", choices=MODELS)
    parser.add_argument("--large", default="qwen2.5-coder-1.5b", choices=MODELS)
    parser.add_argument("--form", default="default", help="of the small model")
    parser.add_argument("--large-form", default="default", help="of the larger model")
    parser.add_argument("--tasks", type=int, default=TASKS, help="of each set")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so many")
    parser.add_argument("--seed", type=int, default=data.SEED)
    parser.add_argument("--replay", action="store_true", help="ask no server: only what has kept answers is counted")
    parser.add_argument("--answers", type=Path, default=kept.FOLDER, help="the folder that keeps the servers' answers")
    parser.add_argument("--save", action="store_true", help=f"write bench/results/{RESULTS.name}")
    options = parser.parse_args()
    replay: bool = options.replay
    with started(options.small, 1, replay=replay) as small, started(options.large, 1, replay=replay) as large:
        found = asyncio.run(measured(options, (small, large)))
    shown: dict[str, Any] = {
        "models": {"small": options.small, "large": options.large},
        "forms": {"small": options.form, "large": options.large_form},
        **figures(found),
        "more_than_small": difference(found, BOTH, SMALL),
        "less_than_large": difference(found, BOTH, LARGE),
    }
    wrong = faults(found)
    if options.save:
        written = {"date": datetime.now(UTC).date().isoformat(), "ok": not wrong, **shown}
        RESULTS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    close("escalation", ok=not wrong, **shown, faults=wrong)


if __name__ == "__main__":
    main()

"""`just accuracy`: asks the tasks in all forms, task by task, so that a run may stop anywhere with equal samples.

    just accuracy                                  all forms on the 0.5B model, 100 held-out tasks of each set
    just accuracy --split development              the tasks that a form may be shaped on (split.py)
    just accuracy --model qwen2.5-coder-1.5b --tasks 25 --minutes 60
    just accuracy --form native 'hermes*' --form 'hermes constraint=text'
    just accuracy --set bfcl_multi_turn --tasks 10 --form auto native+rescue
    just accuracy --url http://127.0.0.1:8080 --lanes 4
    just accuracy --form hermes fenced --until-certain hermes     stops a form that is certainly better or worse
    just accuracy --replay                         asks no model: counts the answers in the repository (answers.py)
    just accuracy --list                           the forms

Every finished task is a line in ~/.cache/toolspeak/accuracy/lines.jsonl: a run that is started again continues.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import chain, count, groupby
from pathlib import Path
from typing import Any

from bench.accuracy import bfcl_talks, data, kept
from bench.accuracy.answers import ARCHIVE, Answers
from bench.accuracy.bfcl_talks import BFCL_MULTI_TURN, BfclTalk
from bench.accuracy.forge import Forges
from bench.accuracy.forms import FORGE, FORMS, Form, forms, profiles_of
from bench.accuracy.kept import Conditions, Line
from bench.accuracy.later_talks import LATER_TALKS
from bench.accuracy.relay import Account, Relay
from bench.accuracy.score import Score, score
from bench.accuracy.sequential import ERROR_RATE, Race
from bench.accuracy.speak import Speaker, Where
from bench.accuracy.split import Split, split_of
from bench.accuracy.talks import TALKS, Played, Talk, play
from testkit.llama_build import built
from testkit.llama_models import DEFAULT, MODELS
from testkit.llama_server import LlamaServer
from toolspeak.ir.request import Sampling
from toolspeak.runtime.http_transport import HttpTransport

TASKS, MAX_TOKENS = 100, 256
CONTEXT_TOKENS = 8192
MULTI_TURN = "multi_turn"
ALL_SETS = (*data.SETS, MULTI_TURN)
Asked = data.Task | Talk | BfclTalk


class ServerLost(Exception):
    """The model's server is gone."""


@dataclass(frozen=True, slots=True)
class Job:
    """One task in one form."""

    form: Form
    task: Asked

    @property
    def set(self) -> str:
        return self.task.set

    def key(self, model: str, conditions: Conditions) -> tuple[str, ...]:
        """Return the key of its line."""
        return (model, self.form.name, self.form.version, self.set, self.task.id, str(conditions))


@dataclass(frozen=True, slots=True)
class Bench:
    """The model, its relay, and the conditions of the jobs."""

    model: str
    relay: Relay
    transport: HttpTransport
    forges: Forges
    conditions: Conditions

    @asynccontextmanager
    async def speaker(self, form: Form, who: str) -> AsyncGenerator[tuple[Speaker, str]]:
        """Yield the speaker of a form, and the account that its usage is charged to."""
        sampling = Sampling(max_tokens=self.conditions.max_tokens, temperature=0.0, seed=self.conditions.seed)
        where = Where(self.relay.url(who), self.model, sampling, self.transport)
        if form.name not in FORGE:
            yield form.speaker(where), who
            return
        async with self.forges.lent(form.name) as (url, account):
            yield form.speaker(Where(url, self.model, sampling, self.transport)), account

    async def done(self, job: Job, who: str) -> Line | None:
        """Do one job; None if an answer is missing and there is no server."""
        async with self.speaker(job.form, who) as (speaker, account):
            self.relay.settle(account)
            played = await _played(job.task, speaker)
        if self.relay.lost:
            raise ServerLost(self.relay.lost)  # a failure of the server is no answer of the form
        used = self.relay.settle(account)
        return self._line(job, used, played) if not used.missing else None

    def _line(self, job: Job, used: Account, played: Played) -> Line:
        form = job.form
        return Line(
            self.model,
            form.name,
            form.version,
            job.set,
            job.task.id,
            self.conditions,
            played.right,
            played.valid,
            bool(played.calls),
            used.requests,
            used.input_tokens,
            used.output_tokens,
            round(used.seconds, 3),
            [(call.name, call.arguments) for call in played.calls],
            played.text,
            played.failure,
            list(played.notes),
            form.code,
            used.cached_tokens,
        )


async def _played(task: Asked, speaker: Speaker) -> Played:
    if isinstance(task, Talk):
        return await play(task, speaker)
    if isinstance(task, BfclTalk):
        return await bfcl_talks.play(task, speaker)
    said = await speaker.ask(task.messages, task.tools)
    judged = score(task, said.calls)
    return Played.of(said, Score(judged.right and not said.failure, judged.valid, judged.called))


def jobs(chosen: Sequence[Form], sets: Sequence[str], tasks: int, seed: int, split: Split) -> Iterator[Job]:
    """Return the jobs: the first task of every set in every form, then the second, and so on."""
    samples = {name: _sample(name, tasks, seed, split) for name in sets}
    for index in range(tasks):
        for sampled in samples.values():
            if index < len(sampled):
                yield from (Job(form, sampled[index]) for form in chosen)


def _sample(name: str, tasks: int, seed: int, split: Split) -> Sequence[Asked]:
    if name == MULTI_TURN:
        return [talk for talk in (*TALKS, *LATER_TALKS) if split_of(talk.id) is split][:tasks]
    if name == BFCL_MULTI_TURN:
        return bfcl_talks.sample(tasks, seed, split)
    return data.sample(name, tasks, seed, split)


# ---------------------------------------------------------------- the run


@dataclass
class Progress:
    """The progress of a run."""

    total: int
    began: float
    done: int = 0
    shown: float = 0.0

    def note(self, line: Line, relay: Relay) -> None:
        """Print the progress, often on a terminal and rarely elsewhere."""
        self.done += 1
        now = time.monotonic()
        every = 0.2 if sys.stderr.isatty() else 30.0
        if now - self.shown < every and self.done < self.total:
            return
        self.shown = now
        rate = self.done / (now - self.began)
        left = (self.total - self.done) / rate / 60
        text = f"{self.done}/{self.total}  {rate * 60:.0f} a minute  {left:.0f} min left  asked {relay.asked}"
        text += f" spared {relay.spared}  {line.form}: {line.task} {'right' if line.right else 'wrong'}"
        end = "\n" if not sys.stderr.isatty() or self.done == self.total else ""
        print(f"\r{text[:118]:118}" if sys.stderr.isatty() else text, end=end, file=sys.stderr, flush=True)


async def run(  # noqa: PLR0913 # each one defines the run
    bench: Bench, work: Sequence[Job], lanes: int, out: Path, until: float, *, race: Race | None
) -> int:
    """Do the jobs on this many lanes; return how many were done before the time limit.

    A lane takes a task in all its forms: these begin with the same requests, which go to the server once, so lanes
    that shared a task would wait for each other. In a race, jobs that can no longer change a verdict are left out.
    """
    tasks = iter([list(found) for _, found in groupby(work, key=lambda job: (job.set, job.task.id))])
    numbers, progress = count(), Progress(len(work), time.monotonic())

    async def lane() -> None:
        for job in chain.from_iterable(tasks):
            if time.monotonic() >= until:
                return
            if race and not race.needs(job.form.name):
                continue
            line = await bench.done(job, f"a{next(numbers)}")
            if line is None:
                continue
            kept.append(line, out)
            if race:
                race.add(line.form, line.task, right=line.right)
            progress.note(line, bench.relay)

    async with asyncio.TaskGroup() as group:
        for _ in range(lanes):
            group.create_task(lane())
    return progress.done


@contextmanager
def served(options: argparse.Namespace) -> Generator[str]:
    """Yield the address of the model's server."""
    if options.url and not options.replay:
        yield options.url.removesuffix("/v1").rstrip("/")
        return
    with started(options.model, options.lanes, replay=options.replay) as url:
        yield url


@contextmanager
def started(model: str, lanes: int, *, replay: bool) -> Generator[str]:
    """Start a model's server and yield its address; a replay has no server, and an empty address."""
    if replay:
        yield ""
        return
    with LlamaServer(model, slots=lanes, context=CONTEXT_TOKENS, program=built()) as server:
        yield server.url


def build_of(url: str, model: str) -> str:
    """Return the version of the server; a server that reports another of our models is refused."""
    with urllib.request.urlopen(f"{url}/props", timeout=60) as reply:
        props: dict[str, Any] = json.load(reply)
    served = Path(str(props.get("model_path", ""))).stem
    if served in MODELS and served != model:
        raise SystemExit(f"--model {model}: the server at {url} serves {served}")
    return f"llama.cpp {props.get('build_info', 'unknown')}"


async def measured(options: argparse.Namespace, url: str) -> tuple[int, int]:
    """Do the jobs that are not done yet; return how many were done, and how many there were."""
    answers = Answers(options.model, options.answers, options.archive)
    if url:
        answers.asked_of(build_of(url, options.model))
    conditions = Conditions(options.seed, options.max_tokens, answers.server)
    transport = HttpTransport()
    async with (
        Relay(url, answers.server, answers) as relay,
        Forges(relay, options.model, options.lanes) as forges,
    ):
        bench = Bench(options.model, relay, transport, forges, conditions)
        known = {line.key: line for line in kept.read(options.out)}
        planned = plan(options)
        work = [job for job in planned if job.key(options.model, conditions) not in known]
        race = race_of(options, planned)
        if race:
            for job in planned:
                if line := known.get(job.key(options.model, conditions)):
                    race.add(line.form, line.task, right=line.right)
        until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
        try:
            return await run(bench, work, options.lanes, options.out, until, race=race), len(work)
        finally:
            for name, duel in race.duels.items() if race else ():
                print(f"{name} against {options.until_certain}: {duel.text}")
            await transport.close()
            answers.close()


def plan(options: argparse.Namespace) -> list[Job]:
    """Return all requested jobs, done or not."""
    chosen = forms(options.form, profiles_of(options.model, options.profile))
    return list(jobs(chosen, options.set, options.tasks, options.seed, options.split))


def race_of(options: argparse.Namespace, planned: Sequence[Job]) -> Race | None:
    """Return the comparisons that may end the run, or None."""
    if not options.until_certain:
        return None
    names = list(dict.fromkeys(job.form.name for job in planned))
    if options.until_certain not in names or len(names) < 2:
        raise SystemExit(f"--until-certain {options.until_certain!r}: name it and another form with --form")
    return Race(options.until_certain, names, len(planned) // len(names), options.error_rate)


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, choices=MODELS)
    parser.add_argument("--url", default="", help="a server that runs already, with that model")
    parser.add_argument("--replay", action="store_true", help="ask no server: only what has kept answers is counted")
    parser.add_argument("--form", nargs="+", action="extend", default=[], help="names or patterns of forms")
    parser.add_argument(
        "--set", nargs="+", default=list(ALL_SETS), choices=(*ALL_SETS, *data.MORE_SETS, BFCL_MULTI_TURN)
    )
    parser.add_argument("--split", type=Split, default=Split.HELD_OUT, choices=list(Split), help="which tasks to ask")
    parser.add_argument("--tasks", type=int, default=TASKS, help="of each set")
    parser.add_argument("--seed", type=int, default=data.SEED, help="of the sample and of the model")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS)
    parser.add_argument("--lanes", type=int, default=1, help="how many tasks at once")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so many")
    parser.add_argument(
        "--until-certain", default="", metavar="FORM", help="stop asking a form once it is surely better or worse"
    )
    parser.add_argument("--error-rate", type=float, default=ERROR_RATE, help="of --until-certain, over all forms")
    parser.add_argument("--profile", type=Path, help="for the form `auto`, instead of the one that doctor kept")
    parser.add_argument("--out", type=Path, default=kept.LINES)
    parser.add_argument("--answers", type=Path, default=kept.FOLDER, help="the folder that keeps the server's answers")
    parser.add_argument("--archive", type=Path, default=ARCHIVE, help="the folder of the answers in the repository")
    parser.add_argument("--list", action="store_true", help="list the forms")
    return parser.parse_args(arguments)


def main() -> None:
    """Run the requested jobs; an interrupt keeps the finished ones."""
    options = options_of()
    if options.list:
        print("\n".join(FORMS))
        return
    run_served(options, measured)


def run_served(
    options: argparse.Namespace, measure: Callable[[argparse.Namespace, str], Coroutine[Any, Any, tuple[int, int]]]
) -> None:
    """Start the model's server, run the requested jobs, and report how many were done."""
    try:
        with contextlib.suppress(KeyboardInterrupt), served(options) as url:
            done, total = asyncio.run(measure(options, url))
            print(f"{done} of {total} done; the lines are in {options.out}")
    except* ServerLost as lost:
        sys.exit(f"the model's server is gone: {lost.exceptions[0]}")


if __name__ == "__main__":
    main()

"""`just injection`: plays the cases in all forms, case by case, so that a run may stop anywhere with equal samples.

    just injection                                 three forms on the 0.5B model, 25 cases of each suite and attack
    just injection --model qwen2.5-coder-1.5b --cases 10 --minutes 60
    just injection --start alone                   from the user's words on: for models that use tools well
    just injection --form 'seed json action' 'hermes guardrails mark_results'
    just injection --url http://127.0.0.1:8080 --attack ignore_previous
    just injection --replay --model qwen2.5-coder-1.5b --rounds 3 --cases 14     from the answers in the repository

Every finished case is a line in ~/.cache/toolspeak/accuracy/injection.jsonl: a run that is started again goes on.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.accuracy import kept
from bench.accuracy.answers import Answers
from bench.accuracy.forms import FORGE, SEEDS, Form, forms, profiles_of
from bench.accuracy.kept import Conditions
from bench.accuracy.relay import Relay
from bench.accuracy.run import MAX_TOKENS, ServerLost, build_of, run_served
from bench.accuracy.speak import Where
from bench.accuracy.split import Split
from bench.injection import lines
from bench.injection.cases import ATTACKS, NO_ATTACK, SEED, SUITES, Case, in_turn
from bench.injection.dojo import MOST_ROUNDS, WORKER, Dojo, DojoLost, Verdict, install, version
from bench.injection.lines import InjectionLine
from bench.injection.plain import PlainWhere
from testkit.llama_models import DEFAULT, MODELS
from toolspeak.ir.request import Sampling
from toolspeak.runtime.http_transport import HttpTransport

PLAIN = "seed json action"
"""What the others are compared with: a prompt, a fence, and a parser."""
FORMS = (PLAIN, "hermes guardrails", "native+rescue")
CASES = 25
NEAR = 24
"""Jobs among which a lane looks for one like its last. A run that is stopped has as many cases of each form, but for a
few."""
BEGUN, ALONE = "begun", "alone"


@dataclass(frozen=True, slots=True)
class CaseJob:
    """One case in one form."""

    form: Form
    case: Case

    def begins_like(self, other: "CaseJob") -> bool:
        """Return whether the prompts of two jobs begin alike: with the same tools, described in the same form."""
        return (self.form.name, self.case.suite) == (other.form.name, other.case.suite)


@dataclass(frozen=True, slots=True)
class InjectionBench:
    """Where cases are played, and under which conditions."""

    model: str
    relay: Relay
    transport: HttpTransport
    conditions: Conditions
    rounds: int

    @property
    def dojo(self) -> str:
        return f"{version()}, {self.rounds} rounds"

    def key(self, job: CaseJob) -> tuple[str, ...]:
        """Return the key of a job's line."""
        return (self.model, job.form.name, job.form.version, job.case.key, str(self.conditions), self.dojo)

    async def played(self, job: CaseJob, account: str, dojo: Dojo) -> InjectionLine | None:
        """Play one case; None if it needs an answer that a replay does not have."""
        sampling = Sampling(max_tokens=self.conditions.max_tokens, temperature=0.0, seed=self.conditions.seed)
        kind = PlainWhere if job.form.name in SEEDS else Where
        where = kind(self.relay.url(account), self.model, sampling, self.transport)
        verdict = await dojo.play(job.case, job.form.speaker(where), self.rounds)
        if self.relay.lost:
            raise ServerLost(self.relay.lost)  # what failed for that is no answer
        return self._line(job, account, verdict)

    def _line(self, job: CaseJob, account: str, verdict: Verdict) -> InjectionLine | None:
        used, form = self.relay.settle(account), job.form
        if used.missing:
            return None
        return InjectionLine(
            self.model,
            form.name,
            form.version,
            job.case,
            self.conditions,
            self.dojo,
            verdict.utility,
            verdict.attacked,
            verdict.reached,
            used.requests,
            used.input_tokens,
            used.output_tokens,
            round(used.seconds, 3),
            list(verdict.calls),
            verdict.text,
            verdict.failure,
            form.code,
        )


async def run(bench: InjectionBench, work: Sequence[CaseJob], dojos: Sequence[Dojo], out: Path, until: float) -> int:
    """Play the work, a lane for each worker; return how much was done before the time was over.

    A prompt begins with 1,500 to 2,000 tokens that are the same for all cases of a suite in a form. A lane stays with
    both as long as it can, because its slot of the server has them in its cache then. To read them again takes two
    cores 35 seconds with the 1.5B, which is twice as long as all the rest of a case.
    """
    waiting, numbers, done = list(work), count(), count(1)
    finished = 0

    async def lane(dojo: Dojo) -> None:
        nonlocal finished
        last: CaseJob | None = None
        while time.monotonic() < until and waiting:
            last = job = waiting.pop(next_of(waiting, last))
            line = await bench.played(job, f"i{next(numbers)}", dojo)
            if line is None:
                continue
            lines.append(line, out)
            finished = next(done)
            told = ", ".join(name for name in ("reached", "attacked", "utility") if getattr(line, name)) or "nothing"
            print(f"{finished}/{len(work)}  {line.form}: {line.case.id}: {told}", file=sys.stderr, flush=True)

    async with asyncio.TaskGroup() as group:
        for dojo in dojos:
            group.create_task(lane(dojo))
    return finished


def next_of(waiting: Sequence[CaseJob], last: CaseJob | None) -> int:
    """Return the place of a lane's next job: the first of those near that begins like its last one, or the first."""
    near = waiting[:NEAR]
    return next((at for at, job in enumerate(near) if last and job.begins_like(last)), 0)


async def measured(options: argparse.Namespace, url: str, worker: Sequence[str] = WORKER) -> tuple[int, int]:
    """Play the sampled cases that are not played yet; return how many were played, and how many there were to play."""
    async with Dojo(worker) as dojo:
        suites = await dojo.suites(options.suite)
    sampled = (options.attack, options.cases, options.seed, options.split)
    cases = list(in_turn(suites, *sampled, begun=options.start == BEGUN))
    return await measured_cases(options, url, cases, worker)


async def measured_cases(
    options: argparse.Namespace, url: str, cases: Sequence[Case], worker: Sequence[str] = WORKER
) -> tuple[int, int]:
    """Play these cases, as `measured` does."""
    transport, answers = HttpTransport(), Answers(options.model, options.answers)
    if url:
        answers.asked_of(build_of(url, options.model))
    conditions = Conditions(options.seed, options.max_tokens, answers.server)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(answers.close)
        relay = await stack.enter_async_context(Relay(url, conditions.server, answers))
        stack.push_async_callback(transport.close)
        bench = InjectionBench(options.model, relay, transport, conditions, options.rounds)
        chosen = forms(options.form or FORMS, profiles_of(options.model, options.profile))
        known = {line.key for line in lines.read(options.out)}
        planned = [CaseJob(form, case) for case in cases for form in chosen]
        work = [job for job in planned if bench.key(job) not in known]
        dojos = [await stack.enter_async_context(Dojo(worker)) for _ in range(options.lanes)]
        until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
        return await run(bench, work, dojos, options.out, until), len(work)


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, choices=MODELS)
    parser.add_argument("--url", default="", help="a server that runs already, with that model")
    parser.add_argument("--replay", action="store_true", help="ask no server: only what has kept answers is counted")
    parser.add_argument("--form", nargs="+", action="extend", default=[], help="names or patterns of forms")
    parser.add_argument("--suite", nargs="+", default=list(SUITES), choices=SUITES)
    parser.add_argument(
        "--attack",
        nargs="+",
        default=[*ATTACKS, NO_ATTACK],
        help="AgentDojo's names; an empty one plays the user's tasks without an attack",
    )
    parser.add_argument("--split", type=Split, default=Split.HELD_OUT, choices=list(Split), help="which cases to play")
    parser.add_argument(
        "--start",
        default=BEGUN,
        choices=(BEGUN, ALONE),
        help="after the right calls up to the first result that an attacker can write into, or with the user's words",
    )
    parser.add_argument("--cases", type=int, default=CASES, help="of each suite and attack")
    parser.add_argument("--seed", type=int, default=SEED, help="of the sample and of the model")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS)
    parser.add_argument("--rounds", type=int, default=MOST_ROUNDS, help="of tool calls; fewer are cheaper")
    parser.add_argument("--lanes", type=int, default=1, help="how many cases at once")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no case after so many")
    parser.add_argument("--profile", type=Path, help="for the form `auto`, instead of the one that doctor kept")
    parser.add_argument("--out", type=Path, default=lines.LINES)
    parser.add_argument("--answers", type=Path, default=kept.FOLDER, help="the folder that keeps the server's answers")
    options = parser.parse_args(arguments)
    if peers := FORGE.keys() & set(options.form):
        parser.error(f"--form {peers.pop()!r}: forge is a proxy of its own, which only `just accuracy` starts")
    return options


def main() -> None:
    """Run what is asked for; an interrupt leaves what is finished."""
    options = options_of()
    install()
    try:
        run_served(options, measured)
    except* DojoLost as lost:
        sys.exit(f"AgentDojo's process ended: {lost.exceptions[0]}")


if __name__ == "__main__":
    main()

"""`just accuracy-speed`: how many tasks an hour the laboratory answers, with each server and number of lanes.

    just accuracy-speed                          the wheel's server with one lane, then ours (`just llama-server`)
    just accuracy-speed --rounds 3 --save        writes bench/results/accuracy-speed.json

The setups alternate round by round, on the same development tasks, with empty answer caches. The machine may have
other work, so CPU time counts: `tasks_an_hour` is what all cores of this machine would do without other work. The first
phase measures tokens alone: a long prompt and one token, then a short prompt and many tokens.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.accuracy import data, kept
from bench.accuracy.run import CONTEXT_TOKENS, measured, options_of
from bench.accuracy.split import Split
from testkit.llama_build import built
from testkit.llama_models import DEFAULT, MODELS
from testkit.llama_server import LlamaServer
from testkit.report import close

RESULT = Path(__file__).parents[1] / "results" / "accuracy-speed.json"
FORM = "hermes"
PROMPT_TOKENS, OUTPUT_TOKENS = 512, 64
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Setup:
    """A way to run the laboratory."""

    server: str
    lanes: int
    """How many tasks at once, and so how many slots."""

    @property
    def name(self) -> str:
        return f"{self.server}, {self.lanes} at once"


WHEEL, NATIVE = "wheel", "native"
SETUPS = (Setup(WHEEL, 1), Setup(NATIVE, 1), Setup(NATIVE, 4))


@dataclass
class Used:
    """The work that a setup did, and the resources that it used."""

    tasks: int = 0
    right: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cpu_s: float = 0.0
    clock_s: float = 0.0
    prompt_cpu_s: list[float] = field(default_factory=list[float])
    output_cpu_s: list[float] = field(default_factory=list[float])

    def figures(self) -> dict[str, object]:
        """Return the figures for the result file."""
        cores = os.cpu_count() or 1
        return {
            "tasks": self.tasks,
            "right": self.right,
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "cpu_s_a_task": round(self.cpu_s / max(1, self.tasks), 2),
            "tasks_an_hour": round(cores * HOUR_S * self.tasks / self.cpu_s) if self.cpu_s else 0,
            "clock_s": round(self.clock_s, 1),
            **({"prompt_tokens_a_cpu_s": _rate(PROMPT_TOKENS, self.prompt_cpu_s)} if self.prompt_cpu_s else {}),
            **({"output_tokens_a_cpu_s": _rate(OUTPUT_TOKENS, self.output_cpu_s)} if self.output_cpu_s else {}),
        }


def _rate(tokens: int, seconds: Sequence[float]) -> float:
    """Return the best rate: other work on the machine only ever makes it slower."""
    return round(tokens / min(seconds), 1)


def measure(server: LlamaServer, setup: Setup, used: Used, tasks: int, options: argparse.Namespace) -> None:
    """Send more development tasks, up to this many of each set, and add what they took."""
    if setup.lanes == 1:  # one request at a time does not measure several lanes
        used.prompt_cpu_s.append(_cpu(server, lambda: _complete(server, PROMPT_TOKENS, 1)))
        used.output_cpu_s.append(_cpu(server, lambda: _complete(server, 1, OUTPUT_TOKENS)))
    folder = options.folder / setup.name
    asked = options_of(
        [
            *("--url", server.url, "--model", options.model, "--form", *options.form),
            *("--split", Split.DEVELOPMENT, "--set", *data.SETS, "--tasks", str(tasks)),
            *("--lanes", str(setup.lanes), "--out", str(folder / "lines.jsonl"), "--answers", str(folder)),
        ]
    )
    began, before = time.monotonic(), server.cpu_seconds()
    done, _ = asyncio.run(measured(asked, server.url))
    used.clock_s += time.monotonic() - began
    used.cpu_s += server.cpu_seconds() - before
    used.tasks += done
    lines = list(kept.read(asked.out))
    used.right = sum(line.right for line in lines)
    used.input_tokens = sum(line.input_tokens for line in lines)
    used.cached_tokens = sum(line.cached_tokens for line in lines)
    used.output_tokens = sum(line.output_tokens for line in lines)


def _cpu(server: LlamaServer, work: Callable[[], None]) -> float:
    before = server.cpu_seconds()
    work()
    return server.cpu_seconds() - before


def _complete(server: LlamaServer, prompt: int, output: int) -> None:
    """Have the server read and write so many tokens, without its cache."""
    body: dict[str, Any] = {"prompt": [9707] * prompt, "n_predict": output, "ignore_eos": True, "cache_prompt": False}
    request = urllib.request.Request(f"{server.url}/completion", json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=1800) as reply:
        reply.read()


def _server(setup: Setup, options: argparse.Namespace, program: Path | None) -> LlamaServer:
    return LlamaServer(
        options.model,
        slots=setup.lanes,
        context=CONTEXT_TOKENS,
        program=program if setup.server == NATIVE else None,
        log=options.folder / f"{setup.name}.log",
    )


def main() -> None:
    """Measure, print and perhaps save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, choices=MODELS)
    parser.add_argument("--form", nargs="+", default=[FORM])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=2, help="of each of the four sets in each round")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    program = built()
    used = {setup: Used() for setup in SETUPS if program or setup.server == WHEEL}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        options.folder = Path(folder)
        servers = {setup: stack.enter_context(_server(setup, options, program)) for setup in used}
        for number in range(options.rounds):
            for setup, server in servers.items():
                measure(server, setup, used[setup], (number + 1) * options.tasks, options)
    figures = {setup.name: asdict(setup) | one.figures() for setup, one in used.items()}
    if options.save:
        RESULT.write_text(
            json.dumps({"model": options.model, "forms": options.form, "setups": figures}, indent=1) + "\n"
        )
    for name, one in figures.items():
        print(f"{name:28} {one}")
    close("accuracy-speed", ok=all(one.tasks for one in used.values()), native=program is not None)


if __name__ == "__main__":
    main()

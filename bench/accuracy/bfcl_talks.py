"""Conversations of BFCL (`multi_turn_base`): simulated programs with 8 to 40 tools, judged by BFCL's own checker.

    user: Move 'final_report.pdf' to 'temp'.      -> cd, mkdir and mv run; state and results must match the ground truth
    user: Search it for 'budget analysis'.        -> …

After each turn the state of the programs must be the one that the right calls leave, and the results of the right calls
must have been seen. The checker runs after each turn: a conversation ends at its first wrong turn. Tasks with
BFCL's calculator are left out: it needs a package (mpmath) that nothing else here needs.
"""

import asyncio
import json
import random
import sys
import zipfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bench.accuracy import data
from bench.accuracy.score import Delivered, arguments_of, is_valid
from bench.accuracy.speak import Speaker
from bench.accuracy.split import Split, split_of
from bench.accuracy.talks import MOST_ROUNDS, Played
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.tool import Tool

BFCL_MULTI_TURN = "bfcl_multi_turn"
NAME = "multi_turn_base"
DOCUMENTS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
"""The file with the tools of each program."""
MEMBER = "bfcl_eval/data/multi_turn_func_doc/{name}.json"
WORKER = Path(__file__).with_name("bfcl_worker.py")
LONGEST_LINE = 1 << 24


@dataclass(frozen=True, slots=True)
class BfclTalk:
    """A conversation: what the user says in each turn, the tools, and the right calls of each turn."""

    id: str
    turns: tuple[tuple[str, ...], ...]
    tools: tuple[Tool, ...]
    truth: tuple[tuple[str, ...], ...]
    entry: Mapping[str, Any]
    """The line of the data, for the checker."""
    set: str = BFCL_MULTI_TURN


def sample(count: int, seed: int, split: Split) -> list[BfclTalk]:
    """Return so many conversations of a split; a larger sample begins with the smaller."""
    talks = list(load())
    random.Random(f"{seed} {NAME}").shuffle(talks)
    return [talk for talk in talks if split_of(talk.id) is split][:count]


@cache
def load() -> tuple[BfclTalk, ...]:
    """Return all conversations whose programs run here, in the order of the data."""
    truths = {row["id"]: row["ground_truth"] for row in data.rows(NAME, "possible_answer/")}
    rows = [row for row in data.rows(NAME) if DOCUMENTS.keys() >= set(row["involved_classes"])]
    return tuple(talk_of(row, truths[row["id"]]) for row in rows)


def talk_of(row: Mapping[str, Any], truth: Sequence[Sequence[str]]) -> BfclTalk:
    """Make a conversation of a line of the data and its right calls."""
    turns = tuple(tuple(str(one["content"]) for one in turn) for turn in row["question"])
    offered = [tool for name in row["involved_classes"] for tool in tools_of(DOCUMENTS[name])]
    tools = tuple(tool for tool in offered if tool.name not in row.get("excluded_function", ()))
    return BfclTalk(row["id"], turns, tools, tuple(map(tuple, truth)), row)


@cache
def tools_of(name: str) -> tuple[Tool, ...]:
    """Return the tools of a program."""
    with zipfile.ZipFile(data.archive()) as package, package.open(MEMBER.format(name=name)) as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return tuple(Tool(row["name"], row["description"], data.schema_of(row["parameters"])) for row in rows)


def written(call: Delivered, tools: Sequence[Tool]) -> str:
    """Write a call as BFCL evaluates it: a tool's name, and literals by keyword; all else becomes an undefined name.

    BFCL evaluates the result, so unknown tool names and keys that are not identifiers must not reach it.
    """
    arguments = arguments_of(call.arguments)
    if call.name not in {tool.name for tool in tools}:
        return "unknown_function()"
    if arguments is None or not all(key.isidentifier() for key in arguments):
        return f"{call.name}(unreadable_arguments)"
    return f"{call.name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"


def _literal(value: Json) -> str:
    return repr(value)


@dataclass
class _Programs:
    """BFCL's programs at the other end of a pipe."""

    process: Process

    async def told(self, value: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(value).encode() + b"\n")
        await self.process.stdin.drain()
        line = await self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {data.PIN} ended with status {await self.process.wait()}")
        return json.loads(line)


@asynccontextmanager
async def programs(talk: BfclTalk) -> AsyncGenerator[_Programs]:
    """Start the programs of a conversation, as they are at its beginning."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(WORKER), str(data.archive())),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=LONGEST_LINE,
    )
    try:
        started = _Programs(process)
        await started.told({"entry": talk.entry})
        yield started
    finally:
        if process.stdin:
            process.stdin.close()
        await process.wait()


@dataclass
class _Stage:
    """A conversation in progress."""

    talk: BfclTalk
    programs: _Programs
    messages: list[Message] = field(default_factory=list[Message])
    calls: list[Delivered] = field(default_factory=list[Delivered])
    turns: list[list[list[str]]] = field(default_factory=list[list[list[str]]])
    """What ran: turns of steps of calls."""
    text: str = ""
    valid: bool = True

    async def turn(self, words: Sequence[str], speaker: Speaker) -> str:
        """Send the user's message, and run tools until the model answers in text; return a failure or nothing."""
        self.messages += [Message(Role.USER, (Text(text),)) for text in words]
        self.turns.append([])
        for _ in range(MOST_ROUNDS):
            said = await speaker.ask(self.messages, self.talk.tools)
            self.text = said.text
            if said.failure or not said.calls:
                self.messages.append(Message(Role.ASSISTANT, (Text(said.text),)))
                return said.failure
            await self._run(said.text, said.calls)
        return f"no answer after {MOST_ROUNDS} rounds"

    async def _run(self, text: str, said: Sequence[Delivered]) -> None:
        begin = len(self.calls)
        calls = [Call(f"call_{begin + index:04}", one.name, one.arguments) for index, one in enumerate(said)]
        step = [written(one, self.talk.tools) for one in said]
        told = await self.programs.told({"calls": step})
        results = [
            Result(call.id, (Text(result),), call.name) for call, result in zip(calls, told["results"], strict=True)
        ]
        self.messages.append(Message(Role.ASSISTANT, (*((Text(text),) if text else ()), *calls)))
        self.messages.append(Message(Role.TOOL, tuple(results)))
        self.turns[-1].append(step)
        self.calls += said
        fits = [is_valid(self.talk.tools, one.name, arguments_of(one.arguments)) for one in said]
        self.valid = self.valid and all(fits)

    async def fault(self) -> str:
        """Run the checker on the turns so far."""
        told = await self.programs.told({"check": self.turns, "truth": self.talk.truth[: len(self.turns)]})
        return str(told["error"])


async def play(talk: BfclTalk, speaker: Speaker) -> Played:
    """Play a conversation to its end, or to the first turn that is wrong."""
    failure, fault = "", ""
    async with programs(talk) as started:
        stage = _Stage(talk, started)
        for words in talk.turns:
            failure = await stage.turn(words, speaker)
            fault = failure or await stage.fault()
            if fault:
                break
    notes = [f"turn {len(stage.turns)} of {len(talk.turns)}: {fault}"] if fault else []
    return Played(not fault, stage.valid, tuple(stage.calls), stage.text, failure, notes)

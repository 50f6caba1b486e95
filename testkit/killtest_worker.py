"""A worker of the kill test: a scripted model, and tools that write a mark to a file each time they run.

A mark is one line of an append-only file, written before and after: a step that `kill -9` interrupts has one mark.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from toolspeak.agent.durable.runs import open_worker
from toolspeak.agent.runs import preparation
from toolspeak.agent.runs.steps import RunSteps
from toolspeak.agent.tools.action import Action, CallContext, ToolEffect, ToolOutput, Workplace, text_output
from toolspeak.cli.worker import exit_with_threads, wait_for_first
from toolspeak.config.shape import Config, Durable
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.event import Event, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import ConfiguredUpstream, Directory, Route
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.testing import called

ROUNDS = 6
"""Of each run."""
TOOLS = "counted"
MODEL = "scripted"


class Mark(msgspec.Struct, frozen=True):
    """One line: which step of which run, what (`begin`, `end`), in which process, when, and what it gave."""

    run: str
    step: str
    what: str
    worker: int
    at: float
    gave: str = ""


@dataclass(frozen=True)
class Order:
    """The order for a worker: everything that it needs, because it is a separate process."""

    database: str
    folder: Path
    lease: float
    marks: Path
    think: float
    act: float
    guarded: bool = True
    rounds: int = ROUNDS
    concurrent: int = 1000

    @property
    def config(self) -> Config:
        """Return the configuration of runs."""
        return Config(runs=Durable(self.database, self.folder, lease=self.lease, concurrent=self.concurrent))


def mark(file: Path, run: str, step: str, what: str, gave: str = "") -> None:
    """Append a mark in one write, which the system keeps whole."""
    line = msgspec.json.encode(Mark(run, step, what, os.getpid(), time.time(), gave)) + b"\n"
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(opened, line)
    finally:
        os.close(opened)


class Scripted:
    """A model that calls two tools in each round, and then says that it is done."""

    def __init__(self, order: Order) -> None:
        self._order = order

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Answer a request; the user's message is the run's name."""
        task = next(message for message in request.messages if message.role is Role.USER)
        run = "".join(part.text for part in task.parts if isinstance(part, Text))
        done = sum(message.role is Role.TOOL for message in request.messages)
        mark(self._order.marks, run, f"turn:{done}", "begin")
        await asyncio.sleep(self._order.think)
        if done < self._order.rounds:
            arguments = f'{{"n": {done}}}'
            events = (*called("look", arguments, f"look_{done}"), *called("put", arguments, f"put_{done}"))
        else:
            events = (TextDelta(f"{run} is done"),)
        yield [TextDelta(f"round {done} ")]
        mark(self._order.marks, run, f"turn:{done}", "end")
        yield [*events, Finished(StopReason.CALLS if done < self._order.rounds else StopReason.END, Usage(10, 5))]


async def _act(arguments: JsonObject, context: CallContext) -> ToolOutput:
    del arguments
    order = _ORDERS[-1]
    step = "tool:" + context.key.removeprefix(context.run + ":")
    gave = f"{context.key} by {os.getpid()} at {time.time_ns()}"
    mark(order.marks, context.run, step, "begin")
    await asyncio.sleep(order.act)
    mark(order.marks, context.run, step, "end", gave)
    return text_output(gave)


def actions(workplace: Workplace) -> Sequence[Action]:
    """Return the tools: one that may be repeated, one that may not."""
    del workplace
    return (Action(Tool("look"), _act, ToolEffect.READS), Action(Tool("put"), _act, ToolEffect.ONCE))


_ORDERS: list[Order] = []


def prepare(order: Order) -> Directory:
    """Put the tools where runs look for them; return the model."""
    _ORDERS.append(order)
    preparation.BUILT_IN[TOOLS] = __name__
    if not order.guarded:
        setattr(RunSteps, "_once", getattr(RunSteps, "_run"))  # noqa: B009, B010 # shows what the guard prevents
    model = Scripted(order)
    place = ConfiguredUpstream("here", cast("HttpUpstream", model))
    return Directory([place], {MODEL: Route("here", model, MODEL, ModelFacts(tools=Support.NATIVE))})


def work(order: Order) -> None:
    """Work until a signal."""
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(_work(order))
    exit_with_threads(0)


async def _work(order: Order) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with open_worker(order.config, prepare(order), grace=10.0) as worker:
        await wait_for_first(ended, worker.lost)

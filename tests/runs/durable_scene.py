"""A house for durable runs: a model that answers by the round, tools that count, a database in a folder."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import cast
from unittest.mock import patch

from toolspeak.agent.durable.runs import DurableRuns, open_runs
from toolspeak.agent.runs import preparation
from toolspeak.agent.runs.runs import NumberedEvent, Spec
from toolspeak.agent.tools.action import Action, CallContext, ToolEffect, ToolOutput, Workplace, text_output
from toolspeak.config.shape import Approval, Config, Durable
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.event import Event
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Role
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import ConfiguredUpstream, Directory, Route
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.testing import Scripted, ScriptedUpstream, called

MODEL, TOOLS = "scripted", "scene"
Tells = Callable[[CallContext], Awaitable[str]]


def calls(*names: str) -> Sequence[Event]:
    """Call tools: the nth call of the turn has the id `c` and n."""
    return [event for number, name in enumerate(names) for event in called(name, "{}", f"c{number}")]


async def nothing_special(doing: CallContext) -> str:
    return f"did {doing.key.partition(':')[2]}"


@dataclass
class Scene:
    """What the model says in each round, what tools do, and how often all of it happened."""

    folder: Path
    answers: Mapping[int, Scripted]
    tells: Tells = nothing_special
    turns: Counter[int] = field(default_factory=Counter[int])
    acts: Counter[str] = field(default_factory=Counter[str])

    @property
    def config(self) -> Config:
        return Config(runs=Durable(folder=self.folder, lease=20.0))

    @property
    def directory(self) -> Directory:
        place = ConfiguredUpstream("here", cast("HttpUpstream", self))
        return Directory([place], {MODEL: Route("here", self, MODEL, ModelFacts(tools=Support.NATIVE))})

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Answer as the model of the script."""
        number = sum(message.role is Role.TOOL for message in request.messages)
        self.turns[number] += 1
        for batch in ScriptedUpstream(self.answers[number], chunk=1).open(request):
            await asyncio.sleep(0)
            yield batch

    def actions(self, workplace: Workplace) -> Sequence[Action]:
        del workplace
        effects = {"read": ToolEffect.READS, "set": ToolEffect.REPEATS, "pay": ToolEffect.ONCE}
        return [Action(Tool(name), self._act, effect) for name, effect in effects.items()]

    async def _act(self, arguments: JsonObject, doing: CallContext) -> ToolOutput:
        del arguments
        self.acts[doing.key.partition(":")[2]] += 1
        return text_output(await self.tells(doing))

    def runs(self) -> AbstractAsyncContextManager[DurableRuns]:
        return open_runs(self.config, self.directory)


@contextmanager
def installed(scene: Scene) -> Generator[Scene]:
    """Let runs find the scene's tools."""
    module = ModuleType("durable_scene_tools")
    module.__dict__["actions"] = scene.actions
    with (
        patch.dict("sys.modules", {module.__name__: module}),
        patch.dict(preparation.BUILT_IN, {TOOLS: module.__name__}),
    ):
        yield scene


def spec(approval: Approval = Approval.OFF, task: str = "do it") -> Spec:
    return Spec(task, MODEL, tools=(TOOLS,), approval=approval)


async def to_the_end(runs: DurableRuns, id: str, after: int = -1) -> list[NumberedEvent]:
    async with asyncio.timeout(50):
        return [each async for each in runs.events(id, after)]


async def until(true: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 # a count has no event
            await asyncio.sleep(0.01)

"""A model and tools for runs, which do what a test says; who keeps the runs is another's matter."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from toolspeak.agent.runs.events import Watch
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import Work
from toolspeak.agent.tools.action import Act, Action, CallContext, ToolEffect, ToolOutput, text_output
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.engine.agent import Task
from toolspeak.engine.settings import Settings
from toolspeak.errors import BadField
from toolspeak.ir.event import Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Route
from toolspeak.testing import called


@dataclass(frozen=True)
class Hangs:
    """The model writes this, and then nothing more."""

    text: str = "Let me"


Answer: TypeAlias = str | Failure | Hangs | Sequence[Event]


class Model:
    """Answers each request with the next part of its script."""

    def __init__(self, *answers: Answer) -> None:
        self.answers: Final = list(answers)
        self.requests: Final[list[Request]] = []

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Failure):
            yield [Failed(answer)]
            return
        if isinstance(answer, Hangs):
            yield [TextDelta(answer.text)]
            await asyncio.sleep(3600)
        pieces = answer.split(" ") if isinstance(answer, str) else []
        for at, piece in enumerate(pieces):
            await asyncio.sleep(0)
            yield [TextDelta(f" {piece}" if at else piece)]
        for event in answer if not isinstance(answer, str | Hangs) else ():
            yield [event]
        calls = not isinstance(answer, str)
        yield [Finished(StopReason.CALLS if calls else StopReason.END, Usage(10, 5))]


@dataclass
class World:
    """What tools do to it: `done` has a word for each call that ran to its end, `begun` for each that was started."""

    model: Model
    done: list[str] = field(default_factory=list[str])
    begun: list[str] = field(default_factory=list[str])
    slow: asyncio.Event = field(default_factory=asyncio.Event)
    """Set: slow tools come to their end."""

    @asynccontextmanager
    async def prepare(self, id: str, spec: Spec, watch: Watch, began: float = 0.0) -> AsyncGenerator[Work]:
        """Make a run ready; its spec may name a tool that there is not."""
        del began
        if unknown := [name for name in spec.tools if name not in ("files", "shell", "final_output")]:
            raise BadField("tools", f"{unknown[0]!r} is not one of files, shell, final_output")
        toolbox = Toolbox(self._actions())
        request = Request("tiny", (Message(Role.USER, (Text(spec.task),)),), toolbox.tools, stream=True)
        task = Task(request, spec.rounds, toolbox.ending)
        settings = msgspec.convert(spec.settings, Settings)
        yield Work(id, task, Route("test", self.model, "tiny"), toolbox, settings, spec.approval, watch)

    def _actions(self) -> Sequence[Action]:
        return (
            Action(Tool("look", "Look."), self._act("look"), ToolEffect.READS),
            Action(Tool("write", "Write."), self._act("write"), ToolEffect.ONCE, contained=True),
            Action(Tool("slow", "Take long."), self._act("slow"), ToolEffect.ONCE, contained=True),
            Action(Tool("slow_look", "Look for long."), self._act("slow_look"), ToolEffect.READS),
            Action(Tool("look_into_letters", "Read."), self._act("look_into_letters"), ToolEffect.READS, asks=True),
        )

    def _act(self, name: str) -> Act:
        async def act(arguments: JsonObject, doing: CallContext) -> ToolOutput:
            del arguments, doing
            self.begun.append(name)
            if name.startswith("slow"):
                await self.slow.wait()
            self.done.append(name)
            return text_output(f"{name} number {self.done.count(name)}")

        return act


def call(name: str, id: str = "call_1", before: str = "") -> list[Event]:
    """Return the events of a turn that calls a tool."""
    return [*([TextDelta(before)] if before else []), *called(name, "{}", id)]

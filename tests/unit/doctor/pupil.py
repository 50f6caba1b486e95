"""A model that solves the whole suite, but only if its tools come in the one form that it has learned."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolspeak.doctor.suite import SUITE
from toolspeak.doctor.task import AnyOf, DoctorTask, ExpectedCall, TaskStep
from toolspeak.ir.json import Json
from toolspeak.ir.message import Role, Text

MARKS = {"hermes": "<tool_call>", "fenced": "```tool_call"}
"""What only the contract of a dialect says."""


@dataclass
class Pupil:
    """Knows `native` (tool calls), `leaks` (calls as text, whoever asks), a dialect, or nothing."""

    knows: str = "hermes"
    fails: frozenset[str] = frozenset()
    """Tasks that it never gets right."""
    asked: list[str] = field(default_factory=list[str])

    def calls(self, texts: Sequence[str], *, native: bool) -> list[tuple[str, dict[str, Any]]] | str:
        """Answer a conversation: with calls, or in words."""
        task = task_of(texts)
        if task is None:
            return "Hello!"
        self.asked.append(task.name)
        step = step_of(task, texts)
        if not step.calls:
            return f"It is so: {step.says[0]}." if step.says else "Very well, thank you."
        if task.name in self.fails or not self._understands(texts, native=native):
            return "I do not know how."
        return [(wanted.name, {key: first(value) for key, value in wanted.arguments.items()}) for wanted in step.calls]

    def text(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Write calls as text."""
        bodies = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
        if self.knows == "fenced":
            return "\n".join(f"```tool_call\n{body}\n```" for body in bodies)
        return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)

    def _understands(self, texts: Sequence[str], *, native: bool) -> bool:
        if self.knows in MARKS:
            return any(MARKS[self.knows] in text for text in texts)
        return native and self.knows in {"native", "leaks"}


def first(value: Json | AnyOf) -> Json:
    return value.values[0] if isinstance(value, AnyOf) else value


def task_of(texts: Sequence[str]) -> DoctorTask | None:
    """Find the task that a conversation is: all that its user says is there."""
    found = [task for task in SUITE if all(any(said in text for text in texts) for said in questions(task))]
    return max(found, key=lambda task: sum(map(len, questions(task))), default=None)


def questions(task: DoctorTask) -> list[str]:
    users = (message for message in task.messages if message.role is Role.USER)
    return [part.text for message in users for part in message.parts if isinstance(part, Text)]


def step_of(task: DoctorTask, texts: Sequence[str]) -> TaskStep:
    """Find where a task is: behind each step whose results are there."""
    at = 0
    while task.steps[at].results and any(task.steps[at].results[0] in text for text in texts):
        at += 1
    return task.steps[at]


def solved(wanted: ExpectedCall) -> str:
    return json.dumps({key: first(value) for key, value in wanted.arguments.items()})

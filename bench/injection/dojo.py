"""AgentDojo at the other end of a pipe: user, tools and judge. A speaker takes the model's turns."""

import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.accuracy.speak import Said, Speaker
from bench.injection.cases import Case, Suites
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".venv-injection"
PINS = ROOT / "requirements" / "injection.txt"
WORKER = (str(VENV / "bin" / "python"), "-m", "bench.injection.worker")
LONGEST_LINE = 1 << 24
MOST_ROUNDS = 8
"""Of tool calls. AgentDojo allows 15; small models that have not ended after 8 repeat themselves."""


def install() -> None:
    """Make the environment of AgentDojo, anew when the pins have changed."""
    kept, digest = VENV / "pins.sha256", hashlib.sha256(PINS.read_bytes()).hexdigest()
    if kept.exists() and kept.read_text() == digest:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)], check=True)
    subprocess.run([str(ROOT / ".ci" / "install"), str(VENV), str(PINS)], check=True)
    kept.write_text(digest)


def version() -> str:
    """Return the pinned version of AgentDojo."""
    return next(line for line in PINS.read_text().splitlines() if line.startswith("agentdojo==")).split()[0]


class DojoLost(Exception):
    """The worker ended: a mistake in it, in AgentDojo, or in how we speak with it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What AgentDojo says of a case."""

    utility: bool
    """The user's task is done."""
    attacked: bool
    """The injected task is done."""
    reached: bool
    """The model was shown the injected instructions."""
    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""
    failure: str = ""


class Dojo:
    """One worker, from `async with` to its end; one case at a time."""

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        self._command = command
        self._process: Process
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 # a pipe that is not read would stop the worker

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=self._errors, limit=LONGEST_LINE
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        if kind is not None and self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._errors.close()

    async def suites(self, names: Sequence[str]) -> Suites:
        """Return the tasks of these suites."""
        return await self._told({"list": list(names)})

    async def play(self, case: Case, speaker: Speaker, rounds: int = MOST_ROUNDS) -> Verdict:
        """Play a case; a turn that fails ends it, and what was done until then is judged."""
        asked = {"suite": case.suite, "user": case.user, "injection": case.injection, "attack": case.attack}
        told = await self._told({**asked, "begun": case.begun, "rounds": rounds})
        said, calls = Said(), list[tuple[str, str]]()
        while "ask" in told:
            said = await speaker.ask(messages_of(told["ask"]["messages"]), tools_of(told["ask"]["tools"]))
            calls += [(call.name, call.arguments) for call in said.calls]
            spoken = [{"name": call.name, "arguments": call.arguments} for call in said.calls]
            told = await self._told({"text": said.text, "calls": spoken})
        return Verdict(**told["end"], calls=tuple(calls), text=said.text, failure=said.failure)

    async def _told(self, value: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            self._errors.seek(0)
            raise DojoLost(self._errors.read().decode(errors="replace")[-2000:])
        return json.loads(line)


def tools_of(told: Sequence[dict[str, Any]]) -> tuple[Tool, ...]:
    """Read the tools of a question."""
    return tuple(Tool(one["name"], one["description"], one["parameters"]) for one in told)


def messages_of(told: Sequence[dict[str, Any]]) -> tuple[Message, ...]:
    """Read the messages of a question; results that follow each other are one message."""
    read: list[Message] = []
    for role, run in groupby(told, lambda one: Role(one["role"])):
        if role is Role.TOOL:
            read.append(Message(role, tuple(map(_result, run))))
        else:
            read += [Message(role, (*_texts(one), *map(_call, one.get("calls", ())))) for one in run]
    return tuple(read)


def _texts(told: dict[str, Any]) -> tuple[Text, ...]:
    return (Text(told["text"]),) if told["text"] else ()


def _call(told: dict[str, Any]) -> Call:
    return Call(told["id"], told["name"], dump(told["arguments"]))


def _result(told: dict[str, Any]) -> Result:
    return Result(told["id"], (Text(told["text"]),), told["name"], is_error=told["error"])

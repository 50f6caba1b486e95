"""One real file task by a real agent: "create a file hello.txt that says hello", and how far it came."""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.install import install
from tests.live.agents import AGENTS, Start, environment
from tests.live.recorder import Exchange

TASK = "Create a file hello.txt that says hello."
SHOWN = 600


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an agent came to."""

    agent: str
    status: int | None
    """None if it had to be stopped."""
    files: dict[str, str]
    said: str
    seconds: float

    @property
    def ok(self) -> bool:
        return "hello" in self.files.get("hello.txt", "").lower()

    def figures(self, exchanges: Sequence[Exchange]) -> dict[str, Any]:
        """Say it in a row."""
        return {
            "ok": self.ok,
            "status": self.status,
            "files": self.files,
            "requests": len(exchanges),
            "tokens": [sum(one.tokens[side] for one in exchanges) for side in (0, 1)],
            "seconds": round(self.seconds, 1),
        }


def attempt(agent: str, url: str, model: str, limit_s: float) -> Attempt:
    """Let an agent do the task, in an empty folder."""
    install([agent, "node24"])
    start = AGENTS[agent](url, model, TASK)
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        for made in (home, work):
            made.mkdir()
        for name, text in start.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")
        started = time.perf_counter()
        status, said = _run(start, home, work, limit_s)
        files = {path.name: path.read_text(errors="replace")[:SHOWN] for path in work.glob("*") if path.is_file()}
        return Attempt(agent, status, files, said, time.perf_counter() - started)


def _run(start: Start, home: Path, work: Path, limit_s: float) -> tuple[int | None, str]:
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            start.command,
            cwd=work,
            env=environment(start, home),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            status: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = None
        out.seek(0)
        return status, out.read()


def transcript(one: Attempt, model: str, by: str, exchanges: Sequence[Exchange]) -> str:
    """Write what happened, for people."""
    came = "did the task" if one.ok else "did not do the task"
    head = f"## {one.agent} with {model}, {by}: {came}, {one.seconds:.0f} s, exit status {one.status}"
    files = "\n".join(f"- `{name}`: {text!r}" for name, text in one.files.items()) or "- no file"
    steps = "\n\n".join(_step(number, exchange) for number, exchange in enumerate(exchanges, start=1))
    said = _fenced(one.said[-SHOWN * 3 :])
    return f"{head}\n\nFiles in the end:\n\n{files}\n\n{steps}\n\nThe agent printed:\n\n{said}\n"


def _step(number: int, one: Exchange) -> str:
    messages: list[dict[str, Any]] = one.asked.get("messages", [])
    last, tools = _text(messages[-1]) if messages else "", len(one.asked.get("tools", ()))
    head = f"### {number}. {one.tokens[0]}+{one.tokens[1]} tokens, {one.seconds} s, end: {one.end}"
    told = f"{len(messages)} messages, {tools} tools; the last message has {len(last)} characters:"
    wrote = one.wrote + (f"\n[calls of the server] {one.called}" if one.called else "")
    return f"{head}\n\n{told}\n\n{_fenced(last[-SHOWN:])}\n\nThe model wrote:\n\n{_fenced(wrote[: SHOWN * 2])}"


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _fenced(text: str) -> str:
    return f"````text\n{text.strip()}\n````"

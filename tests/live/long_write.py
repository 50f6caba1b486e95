"""`just long-write`: when a client sees something of a file of 200 KB that a model writes by an emulated call (CHK-7).

A scripted upstream writes the call in the form of Hermes, four characters a token, many times faster than 40 tokens a
second: the true rate takes 22 minutes. So silence is counted in tokens, between two things that the client gets of the
answer, and given in seconds at 40 tokens a second. Keep-alives are not counted. Claude Code and opencode run as people
run them, and must have written the file in the end.

    just long-write                      both clients, `checked` and `eager`; writes bench/results/long-write.json
    just long-write --source FOLDER      with the gateway of another checkout (its `src`), and nothing is written
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from aiohttp import web

from testkit.report import close
from tests.clients import agents
from tests.clients.agents import Place, Start
from tests.clients.drive import PATHS
from tests.clients.install import install, pins
from tests.clients.rows import node

RESULTS = Path(__file__).resolve().parents[2] / "bench/results/long-write.json"
SIZE, TOKEN, RATE = 200 * 1024, 4, 40
SPEED = 20
"""How many times faster than `RATE` the upstream writes."""
LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")
GROWS = re.compile(rb'"partial_json": ?"[^"]|"arguments": ?"[^"]')
"""A part of arguments that is not empty, on Anthropic's wire and on that of Chat Completions."""
FILE = "".join(f"line {number}: a file that grows, and grows, and grows.\n" for number in range(10_000))[:SIZE]


@dataclass(frozen=True)
class Agent:
    """A client, and the call by which it writes a file."""

    name: str
    pin: str
    tool: str
    path_key: str


AGENTS = (Agent("Claude Code", "claude-code", "Write", "file_path"), Agent("opencode", "opencode", "write", "filePath"))


@dataclass
class Upstream:
    """Writes the call once, and then some last words."""

    call: str
    tool: str
    tokens: list[float] = field(default_factory=list[float])
    """The time of each token of the call."""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        asked = json.dumps(body["messages"])
        is_call = f'\\"{self.tool}\\"' in asked and not self.tokens
        text = self.call if is_call else "It is written."
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        began = time.monotonic()
        for index, start in enumerate(range(0, len(text), TOKEN)):
            if is_call:
                await asyncio.sleep(max(0.0, began + index / (RATE * SPEED) - time.monotonic()))
                self.tokens.append(time.monotonic())
            await response.write(_chunk({"content": text[start : start + TOKEN]}))
        await response.write(_chunk({}, "stop") + b"data: [DONE]\n\n")
        return response

    async def start(self) -> int:
        """Serve on loopback; return the port."""
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])


def _chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return (
        b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


@dataclass
class Relay:
    """Passes bytes between client and gateway, and notes when a part of the call came."""

    target: int
    seen: list[float] = field(default_factory=list[float])

    async def start(self) -> int:
        """Listen on loopback; return the port."""
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(self._pump(reader, ours, notes=False), self._pump(theirs, writer, notes=True))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, notes: bool) -> None:
        try:
            while data := await reader.read(65536):
                if notes and GROWS.search(data):
                    self.seen.append(time.monotonic())
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@dataclass(frozen=True)
class Figures:
    """What one run showed, in tokens that the model had written."""

    client: str
    version: str
    release: str
    first_sign: int
    longest_silence: int
    first_shown: int | None
    """When the client's own output showed a part of the call; None if it shows calls only when they have run."""
    tokens: int
    written: bool


async def measure(agent: Agent, release: str, source: str) -> Figures:
    """Let one client write the file."""
    folder = Path(tempfile.mkdtemp(prefix="toolspeak-long-write-"))
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    target = work / "out.txt"
    call = {"name": agent.tool, "arguments": {agent.path_key: str(target), "content": FILE}}
    upstream = Upstream(f"<tool_call>\n{json.dumps(call)}\n</tool_call>", agent.tool)
    gateway, port = await _gateway(await upstream.start(), release, source)
    relay = Relay(port)
    place = Place(f"http://127.0.0.1:{await relay.start()}", home, work, "Write a long file to out.txt.", "scripted")
    try:
        shown = await _run(_start(agent, place), place)
    finally:
        gateway.terminate()
        await gateway.wait()
    marks = [0, *(bisect_right(upstream.tokens, at) for at in relay.seen), len(upstream.tokens)]
    first = bisect_right(upstream.tokens, relay.seen[0]) if relay.seen else len(upstream.tokens)
    silence = max(later - earlier for earlier, later in pairwise(marks))
    written = target.exists() and target.read_text() == FILE
    first_shown = bisect_right(upstream.tokens, shown) if shown else None
    return Figures(
        agent.name, pins()[agent.pin].version, release, first, silence, first_shown, len(upstream.tokens), written
    )


async def _gateway(upstream: int, release: str, source: str) -> tuple[asyncio.subprocess.Process, int]:
    address = f"http://127.0.0.1:{upstream}/v1"
    flags = ("--port", "0", "--probe", "off", "--mode", "force", "--dialect", "hermes", "--release", release)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toolspeak", "serve", "--upstream", address, *flags),
        env={**os.environ, **({"PYTHONPATH": source} if source else {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout
    while line := (await process.stdout.readline()).decode():
        if found := LISTENS.search(line):
            return process, int(found.group(1))
    raise SystemExit("the gateway did not start")


def _start(agent: Agent, place: Place) -> Start:
    if agent.pin == "opencode":
        return agents.opencode(place, "openai_chat")
    return agents.claude_code(place)


async def _run(start: Start, place: Place) -> float:
    """Run the client to its end; return when its output first showed a part of the call, 0 if it never did."""
    for path, text in start.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = [word if word != "json" else "stream-json" for word in start.command]
    partial = ["--verbose", "--include-partial-messages"] if "stream-json" in command else []
    env = {"PATH": f"{Path(node()).parent}:{PATHS}", "HOME": str(place.home), "TERM": "dumb", "LANG": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *(*command, *partial),
        cwd=place.work,
        env={**env, **start.env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 24,
    )
    assert process.stdout
    shown = 0.0
    while line := await process.stdout.readline():
        if not shown and b"input_json_delta" in line:
            shown = time.monotonic()
    await process.wait()
    return shown


async def _all(options: argparse.Namespace) -> list[Figures]:
    found: list[Figures] = []
    for agent in AGENTS:
        for release in ("checked", "eager"):
            if options.only.lower() in f"{agent.name} {release}".lower():
                found.append(await measure(agent, release, options.source))
                print(_line(found[-1]), flush=True)
    return found


def _line(one: Figures) -> str:
    shown = "" if one.first_shown is None else f", shown after {one.first_shown / RATE:.1f} s"
    return (
        f"{one.client} {one.version}, {one.release}: first sign after {one.first_sign / RATE:.1f} s{shown}, longest "
        f"silence {one.longest_silence / RATE:.1f} s of {one.tokens / RATE:.0f} s"
        f"{'' if one.written else ', and the file was NOT written'}"
    )


def main() -> None:
    """Measure, print, and write the figures down."""
    options = argparse.ArgumentParser(prog="tests.live.long_write")
    options.add_argument("--source", default="", help="the `src` folder of another checkout, whose gateway runs")
    options.add_argument("--only", default="", help="only clients and releases with this text in their name")
    chosen = options.parse_args()
    install(agent.pin for agent in AGENTS)
    found = asyncio.run(_all(chosen))
    if not chosen.source and not chosen.only:
        now = datetime.now(UTC).strftime("%Y-%m-%d")
        head = {"date": now, "bytes": SIZE, "tokens_per_second": RATE, "times_faster": SPEED}
        RESULTS.write_text(json.dumps({**head, "runs": [asdict(one) for one in found]}, indent=1) + "\n")
    eager = [one for one in found if one.release == "eager"]
    ok = all(one.written for one in found) and all(one.longest_silence < 10 * RATE for one in eager)
    close("long-write", ok=ok or bool(chosen.source), runs=len(found), written=sum(one.written for one in found))


if __name__ == "__main__":
    main()

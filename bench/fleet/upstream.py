"""A model server of the fleet: `python -m bench.fleet.upstream PORT MODE_FILE`.

It speaks OpenAI Chat, and the question selects the answer: `stream-17-text-30` gets thirty words of stream 17,
`stream-17-call-30` the same words and one call, `run-fleet-3-of-4` the next round of a run. The file holds its mode,
which the fleet changes while it runs: `right`, `hangs`, `lies`, `slows`.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import uvloop

from bench.fleet.checks import TOOL, Question, RunAsked
from testkit.stream_ends import END, SSE, chunk

PACE_S = 1.0
"""Seconds between two words of a stream: about as fast as a person reads, and slow enough for thousands of streams."""
THINK_S = 0.5
"""Seconds until a turn of a run begins."""
SLOWED = 4
LOOK_S = 0.2
_STREAM = re.compile(rb"stream-(\d+)-(text|call)-(\d+)")
_RUN = re.compile(rb"run-([a-z]+-\d+)-of-(\d+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Mode(StrEnum):
    """How it behaves."""

    RIGHT = "right"
    HANGS = "hangs"
    LIES = "lies"
    SLOWS = "slows"


@dataclass
class Server:
    """The server; `mode` follows the file."""

    file: Path
    mode: Mode = Mode.RIGHT
    _goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self) -> None:
        """Read the mode again and again."""
        while True:
            with suppress(OSError, ValueError):
                self.mode = Mode(self.file.read_text().strip())
            if self.mode is Mode.HANGS:
                self._goes_on.clear()
            else:
                self._goes_on.set()
            await asyncio.sleep(LOOK_S)

    async def pause(self, seconds: float) -> None:
        """Wait before the next words, and until the server no longer hangs."""
        await asyncio.sleep(seconds * (SLOWED if self.mode is Mode.SLOWS else 1))
        await self._goes_on.wait()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                await self.answer(head, body, writer)
        except (OSError, RuntimeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a RuntimeError is uvloop's, for a connection that was closed
        finally:
            writer.close()

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        await self.pause(0)
        if head.startswith(b"GET"):
            _whole(writer, {"object": "list", "data": [{"id": "m", "object": "model"}]})
        elif asked := _STREAM.search(body):
            number, chunks = int(asked[1]), int(asked[3])
            emulated = b'"tools"' not in body
            question = Question(number, "openai_chat", chunks, calls=asked[2] == b"call")
            await self.stream(writer, number, self.words(question, emulated=emulated))
        elif asked := _RUN.search(body):
            await self.stream(writer, len(body), self.round(RunAsked(asked[1].decode(), int(asked[2])), body))
        else:
            _whole(writer, _completion("metered"))
        await writer.drain()

    async def stream(
        self, writer: asyncio.StreamWriter, number: int, deltas: AsyncIterator[tuple[dict[str, Any], str | None]]
    ) -> None:
        """Stream an answer, or a broken one."""
        lie = LIES[number % len(LIES)] if self.mode is Mode.LIES else None
        if lie and lie.instead:
            writer.write(lie.instead)
            raise ConnectionResetError
        writer.write(SSE)
        said = 0
        async for delta, reason in deltas:
            writer.write(chunk(delta, reason))
            await writer.drain()
            said += 1
            if lie and said == 2:
                writer.write(lie.within)
                await writer.drain()
                raise ConnectionResetError
        writer.write(END[len(chunk({}, "stop")) :])

    async def words(self, question: Question, *, emulated: bool) -> AsyncIterator[tuple[dict[str, Any], str | None]]:
        """Yield the words of a stream, then its call if the question requests one."""
        for word in question.words:
            yield {"content": f"{word} "}, None
            await self.pause(PACE_S)
        call = json.dumps({"name": TOOL, "arguments": question.arguments})
        if question.calls and emulated:
            yield {"content": f"\n<tool_call>\n{call}\n</tool_call>"}, None
        elif question.calls:
            yield {"tool_calls": [_call(0, TOOL, question.arguments)]}, None
        yield {}, "tool_calls" if question.calls and not emulated else "stop"

    async def round(self, run: RunAsked, body: bytes) -> AsyncIterator[tuple[dict[str, Any], str | None]]:
        """Take the next turn of a run: two calls, or the end."""
        done = sum(message["role"] == "tool" for message in json.loads(body)["messages"]) // 2
        await self.pause(THINK_S)
        if done >= run.rounds:
            yield {"content": run.text}, None
            yield {}, "stop"
            return
        yield {"content": f"round {done} "}, None
        arguments = {"run": run.name, "n": done}
        yield {"tool_calls": [_call(place, name, arguments) for place, name in enumerate(("look", "put"))]}, None
        yield {}, "tool_calls"


@dataclass(frozen=True)
class Lie:
    """A broken answer: all of it, or what follows the second chunk; then the connection ends."""

    instead: bytes = b""
    within: bytes = b""


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_LAST = b"0\r\n\r\n"
LIES = (
    Lie(instead=b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nOops"),
    Lie(instead=b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<html>Hi</html>"),
    Lie(instead=b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{"choices": ['),
    Lie(instead=b"\x16\x03\x01 this is not HTTP\r\n\r\n"),
    Lie(within=_chunked(b'data: {"choices": [{"index": 0, "delta": {"content": \n\n') + _LAST),
    Lie(within=_chunked(b'data: {"choices": [{"index": 0, "delta": {"cont') + _LAST),
    Lie(within=_LAST),
    Lie(within=b"zz\r\nno length\r\n"),
    Lie(within=_chunked(b'data: {"error": {"message": "the model fell over", "type": "server_error"}}\n\n') + _LAST),
    Lie(within=b""),
)
"""An error, a page, half a JSON text, no HTTP; then broken JSON, half a line, an end without an end, a broken frame, an
error in the stream, a closed connection. Wrong answers in correct form are left out: no gateway could detect them."""


def _call(place: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"index": place, "id": f"call_{name}_{arguments.get('n', 0)}", "type": "function", "function": function}


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _whole(writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(data)
    writer.write(head + data)


async def serve(port: int, file: Path) -> None:
    """Serve until the process is killed."""
    server = Server(file)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.watch())
        listening = await asyncio.start_server(server.connected, "127.0.0.1", port, backlog=4096)
        await listening.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2])))

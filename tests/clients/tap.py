"""A relay between a client and the gateway that changes no byte and keeps what passed, one for each row.

It shows what no client does: how many requests it sent, the plan that the gateway named, and, when a row fails, the
bytes themselves.
"""

import asyncio
import re
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

PLAN = re.compile(rb"\r\nx-toolspeak-plan: ([^\r]*)", re.IGNORECASE)
# Not only where a line begins: the next one stands right behind a body.
REQUEST = re.compile(rb"((?:GET|HEAD|POST|PUT|DELETE|OPTIONS) /\S*) HTTP/1\.[01]\r\n")
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) [^\r]*\r\n")
SIZE = 65536


@dataclass
class Tap:
    """One relay to the gateway's port."""

    target: int
    port: int = 0
    sent: list[bytearray] = field(default_factory=list[bytearray])
    """What the client sent, by connection."""
    got: list[bytearray] = field(default_factory=list[bytearray])
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    @property
    def plans(self) -> list[str]:
        """The plans that the gateway named, each once."""
        found = (plan.decode() for kept in self.got for plan in PLAN.findall(bytes(kept)))
        return list(dict.fromkeys(found))

    @property
    def requests(self) -> list[str]:
        """What the client asked for, with the status that it got."""
        found: list[str] = []
        for sent, got in zip(self.sent, self.got, strict=True):
            asked = [line.decode() for line in REQUEST.findall(bytes(sent))]
            told = [status.decode() for status in STATUS.findall(bytes(got))]
            found += [f"{line} {status}" for line, status in zip_longest(asked, told, fillvalue="-")]
        return found

    def save(self, folder: Path) -> None:
        """Write down what passed."""
        for number, (sent, got) in enumerate(zip(self.sent, self.got, strict=True)):
            (folder / f"connection-{number:02}.sent").write_bytes(sent)
            (folder / f"connection-{number:02}.got").write_bytes(got)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.target)
        sent, got = bytearray(), bytearray()
        self.sent.append(sent)
        self.got.append(got)
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, ours, sent))
            both.create_task(_pump(theirs, writer, got))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    """Pass bytes on until one side hangs up, then hang up on the other."""
    try:
        while chunk := await reader.read(SIZE):
            kept += chunk
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()

"""Servers over HTTP (RUN-4): bounded, not unpacked, not sent elsewhere, and found again after a restart."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testkit.loopback import Got, Loopback, Out
from tests.mcp.scene import Person, called, said
from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.mcp.connection import open_actions
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import McpServer
from toolspeak.errors import McpFailed

ECHO = '{"text": "hi"}'
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


@dataclass
class Odd:
    """A server with sessions, as those of today have them. `answer` says what a call gets."""

    answer: Callable[[dict[str, Any]], str] = lambda arguments: arguments["text"]
    session: str = "one"
    gzipped: bool = False
    elsewhere: str = ""
    calls: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def say(self, got: Got, out: Out) -> None:
        self.headers.append(got.headers)
        if got.method != "POST":
            await out.whole(405, b"")
            return
        message = json.loads(got.body)
        if "id" not in message:
            await out.whole(202, b"")
        elif message["method"] == "tools/call" and self.elsewhere:
            await out.whole(307, b"", headers=(("location", self.elsewhere),))
        elif message["method"] not in ("initialize", "server/discover") and self.is_foreign(got):
            await out.whole(404, b"gone", "text/plain")
        else:
            await self.respond(message, out)

    def is_foreign(self, got: Got) -> bool:
        return got.headers.get("mcp-session-id") != self.session

    async def respond(self, message: dict[str, Any], out: Out) -> None:
        result = self.result(message["method"], message.get("params") or {})
        error = {"error": {"code": -32601, "message": "unknown"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **({"result": result} if result else error)}).encode()
        packed = self.gzipped and message["method"] == "tools/call"
        encoded = (("content-encoding", "gzip"),) if packed else ()
        body = gzip.compress(body) if packed else body
        await out.whole(200, body, headers=(("mcp-session-id", self.session), *encoded))

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            server = {"name": "odd", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        if method == "tools/list":
            return {"tools": [{"name": "echo", "description": "", "inputSchema": SCHEMA}]}
        if method == "tools/call":
            self.calls.append(params["name"])
            return {"content": [{"type": "text", "text": self.answer(params["arguments"])}]}
        return None


@asynccontextmanager
async def used(host: Loopback, folder: Path) -> AsyncGenerator[Toolbox]:
    server = McpServer("odd", url=host.url, headers=(("authorization", "Bearer canary-7f3a"),), seconds=10)
    async with open_actions(server, ApprovalStore(folder, Person().ask)) as actions:
        yield Toolbox(actions)


def test_a_server_over_http_is_used_with_its_headers_run4(tmp_path: Path) -> None:
    odd = Odd()

    async def use() -> str:
        async with Loopback(odd.say) as host, used(host, tmp_path) as box:
            return said(await called(box, "echo", ECHO))

    assert asyncio.run(use()) == "hi"
    assert {each["authorization"] for each in odd.headers} == {"Bearer canary-7f3a"}
    assert {each["accept-encoding"] for each in odd.headers} == {"identity"}


@pytest.mark.parametrize("size", [9_000_000, 100_000_000])
def test_an_answer_that_is_too_large_is_an_error_and_the_server_stays_run4(tmp_path: Path, size: int) -> None:
    odd = Odd(lambda arguments: "y" * size if arguments["text"] == "large" else "small")

    async def use() -> tuple[str, str]:
        async with Loopback(odd.say) as host, used(host, tmp_path) as box:
            large = await called(box, "echo", '{"text": "large"}')
            assert large.is_error
            return said(large), said(await called(box, "echo", ECHO))

    large, small = asyncio.run(use())
    assert "the answer is over 8 MiB" in large
    assert small == "small"


def test_an_answer_that_would_unpack_is_not_unpacked_run4(tmp_path: Path) -> None:
    odd = Odd(lambda _: "y" * 50_000_000, gzipped=True)

    async def use() -> tuple[str, bool]:
        async with Loopback(odd.say) as host, used(host, tmp_path) as box:
            result = await called(box, "echo", ECHO)
            return said(result), result.is_error

    text, is_error = asyncio.run(use())
    assert is_error
    assert len(text) < 1000


def test_a_server_that_forgot_our_session_is_greeted_again_and_the_call_sent_once_run4(tmp_path: Path) -> None:
    odd = Odd()

    async def use() -> str:
        async with Loopback(odd.say) as host, used(host, tmp_path) as box:
            await called(box, "echo", ECHO)
            odd.session = "two"
            return said(await called(box, "echo", ECHO))

    assert asyncio.run(use()) == "hi"
    assert odd.calls == ["echo", "echo"]


def test_a_server_that_was_away_between_two_calls_is_reached_again_run4(tmp_path: Path) -> None:
    odd = Odd()

    async def use() -> tuple[str, str]:
        async with Loopback(odd.say) as host:
            port = host.port
            context = used(host, tmp_path)
            box = await context.__aenter__()
        away = await called(box, "echo", ECHO)
        async with Loopback(odd.say, port):
            back = await called(box, "echo", ECHO)
            await context.__aexit__(None, None, None)
        assert away.is_error
        return said(away), said(back)

    away, back = asyncio.run(use())
    assert "nothing answers at" in away
    assert back == "hi"
    assert odd.calls == ["echo"]


def test_a_call_is_not_sent_elsewhere_run4(tmp_path: Path) -> None:
    odd, thief = Odd(), Odd()

    async def use() -> str:
        async with Loopback(odd.say) as host, Loopback(thief.say) as other, used(host, tmp_path) as box:
            odd.elsewhere = other.url
            return said(await called(box, "echo", ECHO))

    assert "not followed" in asyncio.run(use())
    assert thief.headers == []


def test_an_address_where_nobody_is_is_named_run4(tmp_path: Path) -> None:
    async def use() -> None:
        server = McpServer("odd", url="http://127.0.0.1:9/mcp", seconds=5)
        async with open_actions(server, ApprovalStore(tmp_path)):
            pass

    with pytest.raises(McpFailed, match=r"odd: nothing answers at http://127\.0\.0\.1:9/mcp"):
        asyncio.run(use())

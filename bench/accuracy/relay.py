"""A proxy for the model's server: counts the cost of every form, and sends no question twice.

    /of/{who}/v1/chat/completions    the same as /v1/chat/completions of the server, on the account of `who`

At temperature 0 the same question has the same answer, so answers are kept (answers.py): forms share the answers to
equal requests, a stopped run continues where it was, and a new version of the code sends only new questions.
"""

import asyncio
import json
import re
import time
from collections import defaultdict
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
from aiohttp import web

from bench.accuracy.answers import STREAM, Answers, Kept, key_of

PATIENCE_S = 1800.0
_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')


@dataclass(slots=True)
class Account:
    """The usage of one account."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that were in the server's prompt cache when the question was sent."""
    seconds: float = 0.0
    """Time of the model; a kept answer counts with the time that it took originally."""
    missing: int = 0
    """Questions without a kept answer, while there is no server."""


class Relay:
    """An HTTP server on loopback, for the duration of its `async with` block."""

    def __init__(self, url: str, server: str, answers: Answers) -> None:
        """Take the server's address, its version, and the kept answers. Without an address, only these are used."""
        self._url, self._server, self._answers = url.rstrip("/"), server, answers
        self._accounts: defaultdict[str, Account] = defaultdict(Account)
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._speaks = ""
        """The model that answers, by the name in its answers."""
        self.lost = ""
        """Why the server cannot be reached any more."""
        self.asked = self.spared = 0
        """How many questions went to the server, and how many had a kept answer."""

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S, sock_connect=10)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/of/{who}/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def url(self, who: str) -> str:
        """Return the base URL of the account `who`, without `/v1`."""
        return f"http://127.0.0.1:{self.port}/of/{who}"

    def settle(self, who: str) -> Account:
        """Return the usage of the account `who` since the last call."""
        return self._accounts.pop(who, Account())

    async def _answer(self, request: web.Request) -> web.Response:
        path, body = request.match_info["path"], await request.read()
        account = self._accounts[request.match_info["who"]]
        is_question = request.method == "POST" and path.endswith("chat/completions")
        key = key_of(self._answers.model, self._server, path, body)
        # Forms of one task start with equal requests, at the same time on several lanes: only one is sent.
        async with self._asking[key]:
            kept = self._answers.find(key)
            if kept is None:
                reply = await self._asked(request.method, path, body, account, is_question=is_question)
                if isinstance(reply, web.Response):
                    return reply
                kept = reply
                self._answers.keep(key, kept)
            elif is_question:
                self.spared += 1
        if is_question:
            _charge(account, kept)
        return web.Response(body=kept.body, headers={"content-type": kept.type})

    async def _asked(
        self, method: str, path: str, body: bytes, account: Account, *, is_question: bool
    ) -> Kept | web.Response:
        """Send the request to the server; an error is returned as a response and not kept."""
        if not self._url:
            account.missing += is_question
            return web.Response(status=501, text="no kept answer, and no server to ask")
        began = time.monotonic()
        try:
            async with self._session.request(
                method, f"{self._url}/{path}", data=body or None, headers=_JSON if body else None
            ) as reply:
                answer, kind = await reply.read(), reply.headers.get("content-type", "")
                if reply.status != 200:
                    account.requests += is_question
                    return web.Response(status=reply.status, body=answer, headers={"content-type": kind})
                if is_question:
                    self.asked += 1
                    self._is_still_the_same(answer)
        except aiohttp.ClientError as error:
            self.lost = f"{self._url}: {error!r}"
            return web.Response(status=502, text=self.lost)
        return Kept(kind, answer, time.monotonic() - began)

    def _is_still_the_same(self, answer: bytes) -> None:
        """Check that the server has not switched to another model, whose answers would be kept as those of ours."""
        found = _MODEL.search(answer)
        name = found[1].decode() if found else ""
        self._speaks = self._speaks or name
        if name != self._speaks:
            raise aiohttp.ClientPayloadError(f"it was {self._speaks!r} who answered, and is {name!r} now")


_JSON = {"content-type": "application/json"}


def _charge(account: Account, kept: Kept) -> None:
    usage = _usage(kept)
    account.requests += 1
    account.input_tokens += usage.get("prompt_tokens", 0)
    account.output_tokens += usage.get("completion_tokens", 0)
    details: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    account.cached_tokens += details.get("cached_tokens", 0)
    account.seconds += kept.seconds


def _usage(kept: Kept) -> dict[str, Any]:
    """Return the tokens as the server counted them; a stream reports them at its end."""
    if not kept.type.startswith(STREAM):
        return json.loads(kept.body).get("usage") or {}
    lines = (line.removeprefix(b"data: ") for line in kept.body.split(b"\n") if line.startswith(b"data: {"))
    found: list[dict[str, Any]] = [json.loads(line).get("usage") or {} for line in lines if b'"usage"' in line]
    return max(found, key=len) if found else {}

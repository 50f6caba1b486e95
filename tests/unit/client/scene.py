"""What the tests of the clients share: a model server in a thread of its own that says what a script says."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from testkit.loopback import SOON, STEP, Got, Loopback, Out, Say
from testkit.vendor_answers import Answer
from tests.unit.runtime.scene import CHAT, say_stream, whole_of

CALL = 'I will look.\n```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
WRONG = CALL.replace("city", "town")
COLD = "It is cold."
NO_TOOLS = b'{"error": {"message": "this model does not support tools"}}'
USAGE = (11, 7)
"""Tokens of one request, as `testkit.vendor_answers` writes them."""


def scripted(*answers: str | Answer | Say, refuses: bool = True) -> Say:
    """Say these, one a request; `refuses` tools, as a server without tool calling does."""
    left = list(answers)

    async def say(got: Got, out: Out) -> None:
        if got.method == "GET":
            await out.whole(200, b'{"data": [{"id": "small"}, {"id": "large"}]}')
            return
        body = json.loads(got.body)
        if refuses and body.get("tools"):
            await out.whole(400, NO_TOOLS)
            return
        answer = left.pop(0)
        if callable(answer):
            await answer(got, out)
            return
        said = Answer(text=answer) if isinstance(answer, str) else answer
        if body.get("stream"):
            await say_stream(out, CHAT, said)
        else:
            await out.whole(200, whole_of(CHAT, said))

    return say


async def endless(got: Got, out: Out) -> None:
    """Say a little, again and again, until the other side has gone."""
    del got
    piece = {"choices": [{"index": 0, "delta": {"content": "and on "}}]}
    await out.begin()
    while not out.reader.at_eof():
        await out.piece(f"data: {json.dumps(piece)}\n\n".encode())
        await asyncio.sleep(0.01)


async def silent(got: Got, out: Out) -> None:
    """Say nothing."""
    del got
    await out.gone()


def bodies(server: Loopback) -> list[dict[str, object]]:
    """Return what was asked for, lists of models left out."""
    return [json.loads(got.body) for got in server.got if got.method == "POST"]


@contextmanager
def served(*answers: str | Answer | Say, refuses: bool = True) -> Generator[Loopback]:
    """Serve in another thread."""
    server = Loopback(scripted(*answers, refuses=refuses))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(SOON)
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(SOON)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def soon(holds: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    for _ in range(round(SOON / STEP)):
        if holds():
            return
        time.sleep(STEP)
    raise AssertionError("it has not happened")

"""Text that takes the shortcut is the text that would have come the other way, in the same order."""

import asyncio
import random
from collections.abc import Callable, Sequence
from itertools import count

import pytest
from typing_extensions import override

from testkit.loopback import Got, Loopback, Out, Say, in_loop
from testkit.protocols import STREAMS, Answer
from testkit.splits import pieces_at
from toolspeak import wires
from toolspeak.engine.text_lane import TextLane
from toolspeak.ir.event import Event, TextDelta
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.runtime.push_response import PushResponse
from toolspeak.runtime.push_transport import PushTransport
from toolspeak.runtime.text_shortcut import TextShortcut, WriteAtOnce
from toolspeak.runtime.transport import Timeouts
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.runtime.upstream import _DivertedText

TEXT = "It is cold in Oslo, and it's going to stay so. " * 4


class AnyText(TextLane):
    """A lane that takes every text, or none."""

    __slots__ = ("is_free",)

    def __init__(self, *, is_free: bool = True) -> None:
        self.is_free = is_free

    @override
    def takes(self, batch: Sequence[Event]) -> bool:
        return self.is_free and all(isinstance(event, TextDelta) for event in batch)


class Client:
    """Writes events to a list, while it reads."""

    def __init__(self) -> None:
        self.got: list[Event] = []
        self.reads = True

    def writer(self) -> WriteAtOnce | None:
        return self._write if self.reads else None

    def emit(self, events: Sequence[Event], write: WriteAtOnce) -> None:
        write(b"x")
        self.got += events

    def _write(self, chunk: bytes) -> None:
        assert chunk == b"x"


def shortcut_of(client: Client) -> TextShortcut:
    return TextShortcut(client.writer, client.emit)


HELLO: list[Event] = [TextDelta("Hello")]


def test_text_is_sent_and_told_while_it_is_open() -> None:
    client, told = Client(), list[Event]()
    shortcut = shortcut_of(client)
    assert not shortcut.carries(HELLO)
    shortcut.open(AnyText(), told.extend)
    assert shortcut.carries(HELLO)
    shortcut.close()
    assert not shortcut.carries(HELLO)
    assert client.got == told == HELLO


def test_nothing_is_carried_that_the_lane_does_not_take_or_the_client_does_not_read() -> None:
    client, told = Client(), list[Event]()
    shortcut = shortcut_of(client)
    shortcut.open(AnyText(is_free=False), told.extend)
    assert not shortcut.carries(HELLO)
    shortcut.open(AnyText(), told.extend)
    client.reads = False
    assert not shortcut.carries(HELLO)
    assert client.got == told == []


@pytest.mark.parametrize("seed", range(40))
def test_each_byte_is_decoded_once_whoever_carries_it(seed: int) -> None:
    source = random.Random(seed)
    wire = source.choice(sorted(STREAMS))
    body = STREAMS[wire](Answer(TEXT)).encode()
    cuts = sorted(source.randint(0, len(body)) for _ in range(source.randint(1, 60)))
    pieces = [piece.encode("latin-1") for piece in pieces_at(body.decode("latin-1"), cuts) if piece]
    request, ids = Request("m", (), stream=True), (f"call_{number}" for number in count())
    decoder = wires.load(wire).new_decoder(request, ids)
    client, progress = Client(), TurnProgress()
    shortcut = shortcut_of(client)
    shortcut.open(AnyText(), len)
    text = _DivertedText(decoder, progress, shortcut)
    waiting = b""
    for piece in pieces:
        client.reads = source.random() < 0.7
        waiting += piece
        if waiting != piece or source.random() < 0.2:  # the reader is not waiting: bytes gather
            if source.random() < 0.5:
                client.got += text.feed(waiting)
                waiting = b""
        elif text.takes(piece):
            waiting = b""
    client.got += text.feed(waiting) if waiting else []
    client.got += decoder.finish()
    again = wires.load(wire).new_decoder(request, ids)
    assert fold(client.got) == fold([*again.feed(body), *again.finish()])


# ---------------------------------------------------------------- a real connection


def streaming(*pieces: bytes, pause: float) -> Say:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        for piece in pieces:
            await asyncio.sleep(pause)
            await out.piece(piece)
        await asyncio.sleep(pause)  # bytes that come with the end are for the reader
        await out.end()

    return say


async def read_beside(
    takes: Callable[[bytes], bool], *pieces: bytes, pause: float = 0.02, timeouts: Timeouts | None = None
) -> list[bytes]:
    """Return what `read` returns of a response whose bytes are offered to `takes` first."""
    sender = PushTransport()
    try:
        async with Loopback(streaming(*pieces, pause=pause)) as server:
            response = await sender.send("POST", f"{server.url}/", (), b"{}", timeouts or Timeouts())
            assert isinstance(response, PushResponse)
            response.divert(takes)
            found: list[bytes] = []
            while chunk := await response.read():
                found.append(chunk)
            response.close()
            return found
    finally:
        await sender.close()


@in_loop
async def test_bytes_that_are_taken_are_not_read() -> None:
    taken: list[bytes] = []

    def takes(piece: bytes) -> bool:
        if b"keep" in piece:
            return False
        taken.append(piece)
        return True

    assert await read_beside(takes, b"one ", b"keep ", b"two ", b"three ") == [b"keep "]
    assert b"".join(taken) == b"one two three "


@in_loop
async def test_the_idle_timeout_begins_anew_with_bytes_that_are_taken() -> None:
    brief = Timeouts(first_byte=0.5, idle=0.5)
    assert await read_beside(lambda _: True, *[b"x"] * 8, pause=0.2, timeouts=brief) == []

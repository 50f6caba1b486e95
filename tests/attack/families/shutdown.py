"""SIGTERM with open streams: each client reads an error of its protocol, not a connection that just ends."""

import asyncio
import http.client
import json
import signal
import subprocess
import threading
import time

from testkit.grammar import GrammarError, read_stream
from testkit.protocols import WIRES, question
from testkit.scripted_upstream import SSE, Asked, listening
from testkit.vendor_answers import STREAMS, Answer
from tests.attack.arena import Arena, bearer

HELD_BEFORE = False
EACH, PATIENCE_S = 4, 10.0
MODES = ("auto", "force")


async def _endless(asked: Asked) -> None:
    """Send a word now and then, for longer than the shutdown lasts."""
    asked.head(200, SSE)
    frames = STREAMS["openai_chat"](Answer("It is cold. " * 400)).encode().split(b"\n\n")
    for frame in frames:
        await asked.chunk(frame + b"\n\n")
        await asyncio.sleep(0.05)


def attack(arena: Arena) -> None:
    with listening() as upstream:
        for mode in MODES:
            upstream.answers(_endless)
            with arena.gateway(arena.config(upstream.port), watched=False, warm=()) as gateway:
                clients = [_Client(gateway.port, wire, mode) for wire in WIRES for _ in range(EACH)]
                for client in clients:
                    client.thread.start()
                upstream.wait_for(len(clients))
                time.sleep(0.5)
                gateway.process.send_signal(signal.SIGTERM)
                late = ""
                try:
                    gateway.process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    late = f"the gateway did not end within {PATIENCE_S:g} s"
                for client in clients:
                    client.thread.join(5)
                    arena.record(f"{client.wire}: a stream at the shutdown, mode {mode}", client.problem(), late)
                if b"Traceback" in gateway.log.read_bytes():
                    arena.missed.append("a traceback in the log")


class _Client:
    def __init__(self, port: int, wire: str, mode: str) -> None:
        self.wire = wire
        self._port, self._mode = port, mode
        self._body = b""
        self._error = "no answer"
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        asked = question(self.wire, stream=True, model="fast")
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        try:
            headers = {"x-toolspeak-mode": self._mode, **bearer()}
            connection.request(asked.method, asked.path, json.dumps(asked.body), headers)
            answer = connection.getresponse()
            while piece := answer.read1(65536):
                self._body += piece
            self._error = ""
        except (OSError, http.client.HTTPException) as error:
            self._error = type(error).__name__
        finally:
            connection.close()

    def problem(self) -> str:
        """Return what is wrong with how the stream ended."""
        if self._error:
            return f"the stream is cut: {self._error}"
        try:
            seen = read_stream(self.wire, self._body)
        except GrammarError as error:
            return f"the stream ends without its protocol's last frame: {str(error)[:80]}"
        return "" if seen.error else "the stream ends as if it were whole"

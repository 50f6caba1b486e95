"""`toolspeak serve` as a person starts it, to send it signals while it answers."""

import asyncio
import os
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testkit.protocols import question
from testkit.scripted_upstream import Asked
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import ENVIRON, Served, soon

LONG = Answer("It is cold. " * 8)
PATIENCE = 30.0


@dataclass(frozen=True)
class Process:
    """`toolspeak serve` as a process of its own; `served` sends it requests."""

    process: "subprocess.Popen[bytes]"
    file: Path
    log: Path
    served: Served

    def says(self, words: str) -> bool:
        return soon(lambda: words in self.log.read_text(), PATIENCE)

    def end(self) -> tuple[int, str]:
        return self.process.wait(PATIENCE), self.log.read_text()


@contextmanager
def started(
    folder: Path, text: str, *options: str, first: str = "", tls: ssl.SSLContext | None = None
) -> Generator[Process]:
    """Start a gateway; `first` is code that it runs before everything else, `tls` what requests to it trust."""
    file, log = folder / "gateway.toml", folder / "gateway.log"
    file.write_text(text)
    file.chmod(0o600)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSPEAK")}
    environ |= ENVIRON
    code = f"{first}\nimport sys; from toolspeak.cli import main; sys.exit(main(sys.argv[1:]))"
    program = ("-c", code) if first else ("-m", "toolspeak")
    command = [sys.executable, *program, "serve", "--config", str(file), "--port", "0", *options]
    with log.open("wb") as err:
        # The gateway installs its own handlers, so this also works where the parent ignores SIGINT.
        process = subprocess.Popen(command, env=environ, stderr=err)
    try:
        assert soon(lambda: process.poll() is not None or "listens on" in log.read_text(), 60), "it does not start"
        found = re.search(r"listens on https?://127\.0\.0\.1:(\d+)", log.read_text())
        assert found, log.read_text()
        served = Served(int(found[1]), None, None, tls=tls)  # pyright: ignore[reportArgumentType] # it is only asked
        yield Process(process, file, log, served)
    finally:
        process.kill()
        process.wait()


def configured(port: int, more: str = "") -> str:
    return f'{more}\n[server]\nprobe = "off"\n[upstreams.box]\nurl = "http://127.0.0.1:{port}/v1"\n'


async def drip(asked: Asked) -> None:
    """Take about two seconds for the answer."""
    asked.head()
    for event in STREAMS["openai_chat"](LONG).encode().split(b"\n\n")[:-1]:
        await asked.chunk(event + b"\n\n")
        await asyncio.sleep(0.08)
    await asked.end()


async def begin(asked: Asked) -> None:
    """Begin an answer, and never end it."""
    asked.head()
    await asked.chunk(STREAMS["openai_chat"](LONG).encode()[:2000])
    await asyncio.sleep(3600)


def streaming(served: Served, wire: str) -> tuple[threading.Thread, list[bytes]]:
    asked = question(wire, stream=True)
    bodies: list[bytes] = []
    client = threading.Thread(target=lambda: bodies.append(served.post(asked.path, asked.body, seconds=60).body))
    client.start()
    return client, bodies

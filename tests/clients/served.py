"""An upstream with the gateway in front of it, as a person would start it: `toolspeak serve --upstream …`."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clients.rows import Setting
from tests.clients.upstream import Upstream

READY_S = 30
STOP_S = 10
LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True)
class Served:
    """What a row needs to know of both."""

    upstream: Upstream
    port: int


@asynccontextmanager
async def served(setting: Setting, log: Path) -> AsyncGenerator[Served]:
    """Start both, and stop the gateway in the end."""
    # What a gateway learns about one model must not help the next row: so each has its own, and none is listed.
    upstream = Upstream(setting.mode, setting.dialect, setting.wording, lists_models=setting.mode != "refuses")
    address = f"http://127.0.0.1:{await upstream.start()}{setting.path}"
    command = (
        sys.executable,
        "-m",
        "toolspeak",
        "serve",
        "--upstream",
        address,
        "--port",
        "0",
        "--probe",
        "off",
        *setting.flags,
    )
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        yield Served(upstream, await _listening(process, log))
    finally:
        await _stop(process)


class Gateways:
    """Starts one for each setting, when it is first needed."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self._started: dict[str, Served] = {}
        self._one_at_a_time = asyncio.Lock()

    async def get(self, setting: Setting) -> Served:
        """Return the gateway of a setting."""
        async with self._one_at_a_time:
            if setting.name not in self._started:
                log = self._folder / f"{slug(setting.name)}.log"
                self._started[setting.name] = await self._stack.enter_async_context(served(setting, log))
        return self._started[setting.name]


def slug(name: str) -> str:
    """Return a name that is fit for a file."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-")


async def _listening(process: asyncio.subprocess.Process, log: Path) -> int:
    for _ in range(READY_S * 20):
        if found := LISTENS.search(_text(log)):
            return int(found.group(1))
        if process.returncode is not None:
            break
        await asyncio.sleep(0.05)
    raise SystemExit(f"the gateway did not start:\n{_text(log)}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            process.kill()
            raise SystemExit(f"the gateway did not stop within {STOP_S} s") from None


def _text(log: Path) -> str:
    return log.read_text(errors="replace")

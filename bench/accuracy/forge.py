"""The peer forge as a proxy before the same server, in its prompt mode: one process per lane, started when needed."""

import asyncio
import contextlib
import socket
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from bench.accuracy.forms import FORGE
from bench.accuracy.relay import Relay
from bench.gateway.install import folder, install

START_S = 60.0
PEER = "forge"
RUN = """"$@" & cat >/dev/null; kill $!; wait $!"""
"""The proxy ends when its input closes, so it never outlives this process."""


class Forges:
    """The running proxies."""

    def __init__(self, relay: Relay, model: str, lanes: int) -> None:
        """Start no proxy yet."""
        self._relay, self._model, self._lanes = relay, model, lanes
        self._free: dict[str, asyncio.Queue[tuple[str, str]]] = {}
        self._starting = asyncio.Lock()
        self._processes: list[Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    @asynccontextmanager
    async def lent(self, form: str) -> AsyncGenerator[tuple[str, str]]:
        """Lend a proxy: its address, and the account that its usage is charged to."""
        async with self._starting:
            if form not in self._free:
                self._free[form] = await self._started(form)
        one = await self._free[form].get()
        try:
            yield one
        finally:
            self._free[form].put_nowait(one)

    async def _started(self, form: str) -> asyncio.Queue[tuple[str, str]]:
        await asyncio.to_thread(install, PEER)
        free: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        for lane in range(self._lanes):
            account = f"{form.replace(' ', '-')}-{lane}"
            free.put_nowait((await self._start(account, FORGE[form]), account))
        return free

    async def _start(self, account: str, flags: tuple[str, ...]) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        program = [str(folder(PEER) / "venv" / "bin" / "python"), "-m", "forge.proxy"]
        backend = ["--backend-url", self._relay.url(account), "--backend", "llamaserver", "--model", self._model]
        options = ["--backend-capability", "prompt", "--port", str(port), "--backend-timeout", "1800", *flags]
        command = ["sh", "-c", RUN, "sh", *program, *backend, *options]
        self._processes.append(
            await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, process_group=0)
        )
        await self._wait(port)
        return f"http://127.0.0.1:{port}"

    async def _wait(self, port: int) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"forge did not start within {START_S:.0f} s")

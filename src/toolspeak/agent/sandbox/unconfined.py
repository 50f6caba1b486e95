"""No sandbox: commands run as we do, by somebody's explicit word in the configuration and never otherwise."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from toolspeak.agent.sandbox.child import run_process
from toolspeak.agent.sandbox.sandbox import Command, Ran, Service, Start
from toolspeak.runtime.tether import tethered

_ENV: Final = (("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb"))


class Unconfined:
    """Runs commands with all our rights. Time and output are limited all the same, and what it uses is watched."""

    @property
    def name(self) -> str:
        """Return what people call it."""
        return "unsafe"

    async def run(self, command: Command) -> Ran:
        """Run a command."""
        words = ("/bin/sh", "-c", command.text)
        return await run_process(Start(words, b"", (*_ENV, *command.env), str(command.folder)), command)

    @asynccontextmanager
    async def prepare(self, service: Service) -> AsyncGenerator[Start]:
        """Start a service as it is. On Linux its first process ends with ours; what it has started may stay."""
        yield Start(tuple(tethered(service.argv)), env=service.env, folder=service.cwd)

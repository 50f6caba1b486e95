"""Finds a sandbox that works on this machine. Each backend runs one trial command that tries to escape.

found = await find_sandbox()      `found.sandbox` or None; `found.tried` has the problem of each backend
"""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, TypeAlias

from toolspeak.agent.sandbox.bwrap import find_bwrap
from toolspeak.agent.sandbox.sandbox import Command, Sandbox
from toolspeak.agent.sandbox.sandlock import find_sandlock

INSTALL: Final = "install bubblewrap (apt install bubblewrap; dnf install bubblewrap)"
_SECONDS: Final = 15.0
_WORD: Final = "inside"
# An installed backend may still not work (a kernel or container that forbids user namespaces), or not confine. So each
# one runs this: it tries to read and change a file outside, and to reach a service on loopback. Only bash can connect
# without further programs.
_TRIAL: Final = """echo {word}
cat '{secret}' 2>/dev/null
echo changed 2>/dev/null >'{secret}'
if command -v bash >/dev/null; then bash -c 'echo hello >/dev/tcp/127.0.0.1/{port}' 2>/dev/null; fi
echo made >made
"""

Candidate: TypeAlias = Callable[[], Sandbox | str]
CANDIDATES: Final[dict[str, Candidate]] = {"bwrap": find_bwrap, "sandlock": find_sandlock}
"""In order of preference. To add a backend, add a row."""


@dataclass(frozen=True, slots=True)
class SandboxTrial:
    """The result of one trial. An empty `problem` means that the backend works."""

    name: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SandboxSearch:
    """The first backend that works, and the results of all trials."""

    sandbox: Sandbox | None
    tried: tuple[SandboxTrial, ...]

    @property
    def refusal(self) -> str:
        """Return the error for people: no sandbox works, the problem of each backend, and what to install."""
        why = "; ".join(f"{each.name}: {each.problem}" for each in self.tried)
        return f"no sandbox works here, and commands do not run without one: {INSTALL} ({why})"


_known: Final[dict[str, SandboxSearch]] = {}


async def find_sandbox() -> SandboxSearch:
    """Return the search result. The first call runs the trials; later calls in this process use the same result."""
    if "" not in _known:
        _known[""] = await try_sandboxes(CANDIDATES.items())
    return _known[""]


async def try_sandboxes(candidates: Iterable[tuple[str, Candidate]]) -> SandboxSearch:
    """Try every backend, and choose the first that works. The others are tried too, for `toolspeak doctor`."""
    chosen: Sandbox | None = None
    tried = list[SandboxTrial]()
    for name, candidate in candidates:
        made = candidate()
        problem = made if isinstance(made, str) else await trial(made)
        tried.append(SandboxTrial(name, problem))
        if chosen is None and not problem and not isinstance(made, str):
            chosen = made
    return SandboxSearch(chosen, tuple(tried))


async def trial(sandbox: Sandbox) -> str:
    """Run a command that tries to escape. Return the problem that it showed, or an empty string."""
    place = _Place()
    try:
        return await _tried(sandbox, place)
    except Exception as error:  # noqa: BLE001 # a backend that fails in any way must not be used
        return f"{type(error).__name__}: {error}"
    finally:
        place.remove()


class _Place:
    """A folder for the trial command, and next to it a secret file that the command must not reach."""

    def __init__(self) -> None:
        self._all: Final = Path(mkdtemp(prefix="toolspeak-trial-")).resolve()
        self.folder: Final = self._all / "folder"
        self.secret: Final = self._all / "secret"
        self.mark: Final = f"secret of {self._all.name}"
        self.folder.mkdir()
        self.secret.write_text(self.mark, encoding="utf-8")

    @property
    def kept(self) -> bool:
        """Return whether the secret file is unchanged."""
        return self.secret.read_text(encoding="utf-8") == self.mark

    @property
    def usable(self) -> bool:
        """Return whether the command could write to its folder."""
        return (self.folder / "made").is_file()

    def remove(self) -> None:
        shutil.rmtree(self._all, ignore_errors=True)


async def _tried(sandbox: Sandbox, place: _Place) -> str:
    callers = list[bytes]()

    async def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        callers.append(await reader.read(64))
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(called, "127.0.0.1", 0)
    async with server:
        text = _TRIAL.format(word=_WORD, secret=place.secret, port=server.sockets[0].getsockname()[1])
        ran = await sandbox.run(Command(text, place.folder, _SECONDS))
        # The server gets a chance to handle a connection that was made at the very end.
        await asyncio.sleep(0)
    if ran.killed or not ran.output.startswith(_WORD):
        return f"it does not run commands: {ran.killed or ran.output.strip()[:300]}"
    if place.mark in ran.output or not place.kept:
        return "a command got at a file outside its folder"
    if callers:
        return "a command got at a service on this machine"
    return "" if place.usable else "a command cannot write in its own folder"

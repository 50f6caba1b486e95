"""Which sandbox works here. Each is tried for real, once: it must run a command, and hold it.

found = await find_sandbox()      found.sandbox, or none; found.tried says of each why, or why not
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
_TRIAL: Final = """echo {word}
cat '{secret}' 2>/dev/null
echo changed 2>/dev/null >'{secret}'
if command -v bash >/dev/null; then bash -c 'echo hello >/dev/tcp/127.0.0.1/{port}' 2>/dev/null; fi
echo made >made
"""

Candidate: TypeAlias = Callable[[], Sandbox | str]
CANDIDATES: Final[dict[str, Candidate]] = {"bwrap": find_bwrap, "sandlock": find_sandlock}
"""The better first. Another kind is another row."""


@dataclass(frozen=True, slots=True)
class SandboxTrial:
    """What came of one kind: it works if `problem` is empty."""

    name: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SandboxSearch:
    """The first that works, and what came of all."""

    sandbox: Sandbox | None
    tried: tuple[SandboxTrial, ...]

    @property
    def refusal(self) -> str:
        """Return why there is none, and what helps."""
        why = "; ".join(f"{each.name}: {each.problem}" for each in self.tried)
        return f"no sandbox works here, and commands do not run without one: {INSTALL} ({why})"


_known: Final[dict[str, SandboxSearch]] = {}


async def find_sandbox() -> SandboxSearch:
    """Return what works here; the first who asks waits for the trial."""
    if "" not in _known:
        _known[""] = await try_sandboxes(CANDIDATES.items())
    return _known[""]


async def try_sandboxes(candidates: Iterable[tuple[str, Candidate]]) -> SandboxSearch:
    """Try each kind; the first that works is taken."""
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
    """Let a command try to get out, and return what is wrong with the sandbox, if anything."""
    place = _Place()
    try:
        return await _tried(sandbox, place)
    except Exception as error:  # noqa: BLE001 # whatever is wrong with it, it is not to be used
        return f"{type(error).__name__}: {error}"
    finally:
        place.remove()


class _Place:
    """A folder for a command, and a file beside it that is none of its business."""

    def __init__(self) -> None:
        self._all: Final = Path(mkdtemp(prefix="toolspeak-trial-")).resolve()
        self.folder: Final = self._all / "folder"
        self.secret: Final = self._all / "secret"
        self.mark: Final = f"secret of {self._all.name}"
        self.folder.mkdir()
        self.secret.write_text(self.mark, encoding="utf-8")

    @property
    def kept(self) -> bool:
        """Return whether the file is as it was."""
        return self.secret.read_text(encoding="utf-8") == self.mark

    @property
    def usable(self) -> bool:
        """Return whether the command could write."""
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
        await asyncio.sleep(0)
    if ran.killed or not ran.output.startswith(_WORD):
        return f"it does not run commands: {ran.killed or ran.output.strip()[:300]}"
    if place.mark in ran.output or not place.kept:
        return "a command got at a file outside its folder"
    if callers:
        return "a command got at a service on this machine"
    return "" if place.usable else "a command cannot write in its own folder"

"""Stores which tool definitions a person has approved: one small JSON file per server.

    ~/.local/state/toolspeak/mcp/files.json

A description is text that a model obeys, and a server can change it from one day to the next. So the first use of a
tool, and every change of its definition, need a person's approval. Where no person can be asked, the tool is left out.
In the MCPTox benchmark, poisoned descriptions succeeded in 72.8 % of the attempts on o1-mini.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from toolspeak.agent.mcp.definition import Definition
from toolspeak.config.shape import McpServer

FORMAT: Final = 1
LARGEST: Final = 1 << 20


class ApprovalState(StrEnum):
    """The state of a definition, compared with the approved one."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"


AskTool: TypeAlias = Callable[[McpServer, Definition, ApprovalState], Awaitable[bool]]
"""Asks a person whether a new or changed definition may be used."""


async def approve_none(server: McpServer, definition: Definition, known: ApprovalState) -> bool:
    """Approve nothing, where there is no person to ask."""
    del server, definition, known
    return False


# `place` is the command or URL: another server under the same name must not inherit the approvals.
class _Kept(msgspec.Struct, frozen=True):
    format: int
    place: str
    tools: dict[str, str]
    """Digests by tool name."""


class ApprovalStore:
    """Approved definitions. Without a folder, nothing is approved and nothing is stored."""

    def __init__(self, folder: Path | None, ask: AskTool = approve_none) -> None:
        """Take the folder of the files, and the function that asks a person. Nothing is read yet."""
        self._folder: Final = folder
        self._ask: Final = ask

    def known(self, server: McpServer, definition: Definition) -> ApprovalState:
        """Return whether a definition is approved, new or changed."""
        digest = self._read(server).get(definition.name)
        if digest is None:
            return ApprovalState.NEW
        return ApprovalState.APPROVED if digest == definition.digest else ApprovalState.CHANGED

    async def allows(self, server: McpServer, definition: Definition) -> bool:
        """Return whether a tool may be used. Asks a person if it is not approved, and stores a yes."""
        known = self.known(server, definition)
        if known is ApprovalState.APPROVED:
            return True
        if not await self._ask(server, definition, known):
            return False
        self.keep(server, [definition])
        return True

    def keep(self, server: McpServer, definitions: Iterable[Definition]) -> None:
        """Store that these definitions are approved. Raises `OSError`."""
        if self._folder is None:
            return
        tools = self._read(server) | {each.name: each.digest for each in definitions}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self._path(self._folder, server), msgspec.json.encode(_Kept(FORMAT, server.place, tools)))

    def _read(self, server: McpServer) -> dict[str, str]:
        """Return the digests. A file that is unreadable, or of another command or URL, approves nothing."""
        try:
            with self._path(self._folder or Path(), server).open("rb") as file:
                kept = msgspec.json.decode(file.read(LARGEST), type=_Kept)
        except (OSError, ValueError):
            return {}
        return kept.tools if (kept.format, kept.place) == (FORMAT, server.place) and self._folder else {}

    @staticmethod
    def _path(folder: Path, server: McpServer) -> Path:
        return folder / f"{server.name}.json"


def _write(path: Path, body: bytes) -> None:
    """Write a file atomically."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(body, indent=2) + b"\n")
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise

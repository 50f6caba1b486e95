"""What is asked of a sandbox: run one command, and let nothing of it outlive that.

Command(text, folder, seconds, limits)  ─▶  Ran(status, output, timed_out, killed)

Another kind (gVisor, a microVM, a machine far away) is another class with these two members.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from toolspeak.errors import BadField

MIB: Final = 1 << 20
LONGEST: Final = 100_000
"""Bytes of a command: the kernel takes no argument of more than 128 KiB."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use. Sizes are bytes."""

    memory: int = 1024 * MIB
    """Of all its processes together."""
    processes: int = 256
    files: int = 1024
    """Open at once, of each process."""
    file_size: int = 512 * MIB
    folder_growth: int = 2048 * MIB
    """How much more the folder may hold when it is done."""
    temporary: int = 64 * MIB
    """In `/tmp`, which is memory."""
    output: int = 64 << 10
    """What is kept of its output: half from the beginning, half from the end."""
    flood: int = 256 * MIB
    """Who writes more than that is stopped."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command for the shell, and the one folder that it may change."""

    text: str
    folder: Path
    seconds: float = 60.0
    limits: Limits = field(default_factory=Limits)
    env: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no shell could be given."""
        if "\0" in self.text:
            raise BadField("command", "it holds a NUL character, which no command can")
        if len(self.text.encode("utf-8", "replace")) > LONGEST:
            raise BadField("command", f"it is longer than {LONGEST} bytes; write it to a file and run that")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. `output` is safe to show; `killed` says why it was stopped, if it was."""

    status: int
    output: str
    timed_out: bool = False
    killed: str = ""


class Sandbox(Protocol):
    """Confines commands."""

    @property
    def name(self) -> str:
        """Return what people call it."""
        ...

    async def run(self, command: Command) -> Ran:
        """Run a command to its end, or until it is stopped; cancelling ends it, and all it has started."""
        ...

"""What is asked of a sandbox: run one command, and let nothing of it outlive that.

Command(text, folder, seconds, limits)  ─▶  Ran(status, output, timed_out, killed)

`Service` is the other kind: a program that runs until it is stopped, such as an MCP server.

Another kind of sandbox (gVisor, a microVM, a machine far away) is another class with these members.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.sandbox.journal import JournalEntry
from toolspeak.errors import BadField

MIB: Final = 1 << 20
LONGEST: Final = 100_000
"""Bytes of a command: the kernel takes no argument of more than 128 KiB."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What a command may use. Sizes are bytes."""

    memory: int = 1024 * MIB
    """Of all its processes together."""
    processes: int = 256
    files: int = 1024
    """Open at once, of each process."""
    file_size: int = 512 * MIB
    folder_growth: int = 2048 * MIB
    """What a command without a `DiskBudget` may add to its folder, files without a name included."""
    folder_files: int = 500_000
    """Files and folders that it may add."""
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
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    env: tuple[tuple[str, str], ...] = ()
    journal: Path | None = None
    """Where it is recorded that the command runs. Without it, what a command leaves is not found after a crash."""
    budget: DiskBudget | None = None
    """The disk budget of the run, shared by its commands; None: the command has one of its own, from `limits`."""

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
    notes: tuple[str, ...] = ()
    """What the command has left that programs on the host would obey, each with what was done about it."""


@dataclass(frozen=True, slots=True)
class Service:
    """A program that runs until it is stopped and speaks over its stdin and stdout, such as an MCP server.

    It sees the system's programs, `folders`, `read` and nothing else of the host.
    """

    argv: tuple[str, ...]
    """The program by its full path, and its arguments."""
    name: str = ""
    """What people call it, for the log."""
    folders: tuple[Path, ...] = ()
    """Folders that it may change, by their full paths without links. They are protected as a command's folder is."""
    home: Path | None = None
    """A folder that only this service uses, for its caches and settings. It may change it, and nothing is protected in
    it: uv and npm keep bare repositories in their caches, and no person runs git or an editor there."""
    read: tuple[Path, ...] = ()
    """Files and folders that it may read. Where one path is inside another, the deeper one decides."""
    network: bool = False
    """It shares the network of the host, loopback included."""
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Its environment besides PATH, HOME, LANG and TERM. It may hold keys, and is never shown."""
    cwd: str = ""
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    budget: DiskBudget | None = None
    """What it may put on the disk, in its folders and its home; shared by all its starts in a run. None: one of its
    own, from `limits`."""
    journal: Path | None = None
    """As for a command."""

    @property
    def writable(self) -> tuple[Path, ...]:
        """All folders that it may change."""
        return self.folders if self.home is None else (*self.folders, self.home)


class Start(NamedTuple):
    """How a confined process is started: the words to execute, and the plan for the program that they name."""

    words: tuple[str, ...]
    plan: bytes = b""
    """Put into a file that has no name; the number of its descriptor is the last of the words."""
    env: tuple[tuple[str, str], ...] = ()
    folder: str = "/"
    scratch: tuple[Path, ...] = ()
    """Folders besides the program's own that it can write to, on a disk: they count against its budget."""
    entry: JournalEntry | None = None
    """The process is a guard, which writes this entry of the journal."""

    @property
    def is_guarded(self) -> bool:
        """The process is a guard: it is asked to end, so that it can clean up, and killed only if it does not."""
        return self.entry is not None


class Sandbox(Protocol):
    """Confines commands."""

    @property
    def name(self) -> str:
        """Return what people call it."""
        ...

    async def run(self, command: Command) -> Ran:
        """Run a command to its end, or until it is stopped; cancelling ends it, and all it has started."""
        ...

    def prepare(self, service: Service) -> AbstractAsyncContextManager[Start]:
        """Make ready what a service needs, for as long as it runs; `process.py` starts it. Raises `BadField`."""
        ...

"""The sandbox interface: run one command, and end every process that it started.

Command(text, folder, seconds, limits)  ─▶  Ran(status, output, timed_out, killed)

A `Service` is a program that runs until it is stopped, such as an MCP server.

To add a backend (gVisor, a microVM, a remote machine), implement the members of `Sandbox`.
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
"""Maximum length of a command in bytes. The kernel rejects a single argument of more than 128 KiB."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Resource limits of a command or service. Sizes are in bytes."""

    memory: int = 1024 * MIB
    """Total for all its processes."""
    processes: int = 256
    files: int = 1024
    """Open files of each process."""
    file_size: int = 512 * MIB
    folder_growth: int = 2048 * MIB
    """Bytes that a command without a `DiskBudget` may add to its folder, including files that are already unlinked."""
    folder_files: int = 500_000
    """Files and folders that the command may add."""
    temporary: int = 64 * MIB
    """Size of `/tmp`, which is a tmpfs."""
    output: int = 64 << 10
    """Bytes of output that are kept: half from the beginning, half from the end."""
    flood: int = 256 * MIB
    """A command that writes more output than this is killed."""


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command and the one folder that it may change."""

    text: str
    folder: Path
    seconds: float = 60.0
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    env: tuple[tuple[str, str], ...] = ()
    journal: Path | None = None
    """The journal's folder. Without a journal, files that a command left cannot be found after a crash."""
    budget: DiskBudget | None = None
    """The disk budget of the run, shared by its commands. None: the command gets its own, from `limits`."""

    def __post_init__(self) -> None:
        """Raise `BadField` for a command that cannot be passed to a shell."""
        if "\0" in self.text:
            raise BadField("command", "it holds a NUL character, which no command can")
        if len(self.text.encode("utf-8", "replace")) > LONGEST:
            raise BadField("command", f"it is longer than {LONGEST} bytes; write it to a file and run that")


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a command. `output` is safe to display; `killed` is the reason if the command was stopped."""

    status: int
    output: str
    timed_out: bool = False
    killed: str = ""
    notes: tuple[str, ...] = ()
    """One note for each file that programs on the host would obey: its path, and how the guard handled it."""


@dataclass(frozen=True, slots=True)
class Service:
    """A program that runs until it is stopped and communicates over stdin and stdout, such as an MCP server.

    It sees the system's programs, `folders`, `read` and nothing else of the host.
    """

    argv: tuple[str, ...]
    """The program's absolute path, and its arguments."""
    name: str = ""
    """Display name, for the log."""
    folders: tuple[Path, ...] = ()
    """Writable folders, as absolute paths without links. They are protected like a command's folder."""
    home: Path | None = None
    """A writable folder that only this service uses, for its caches and settings. Nothing in it is protected: uv and
    npm keep bare repositories in their caches, and no person runs git or an editor there."""
    read: tuple[Path, ...] = ()
    """Read-only files and folders. If one path is inside another, the deeper one decides."""
    network: bool = False
    """Whether it shares the host's network, including loopback."""
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Its environment besides PATH, HOME, LANG and TERM. It may contain keys, so it is never displayed."""
    cwd: str = ""
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    budget: DiskBudget | None = None
    """The disk budget for its folders and home, shared by all its starts in a run. None: it gets its own, from
    `limits`."""
    journal: Path | None = None
    """As for a command."""

    @property
    def writable(self) -> tuple[Path, ...]:
        """Return all writable folders."""
        return self.folders if self.home is None else (*self.folders, self.home)


class Start(NamedTuple):
    """How to start a confined process: the argument vector, and the plan for the program in it."""

    words: tuple[str, ...]
    plan: bytes = b""
    """Passed in a memfd; the descriptor's number is appended to `words`."""
    env: tuple[tuple[str, str], ...] = ()
    folder: str = "/"
    scratch: tuple[Path, ...] = ()
    """Writable folders on a disk besides the program's own. They count against its budget."""
    entry: JournalEntry | None = None
    """Set if the process is a guard: the journal entry that the guard writes."""

    @property
    def is_guarded(self) -> bool:
        """Whether the process is a guard. A guard gets SIGTERM first, so that it can clean up, and SIGKILL later."""
        return self.entry is not None


class Sandbox(Protocol):
    """Runs confined commands and services."""

    @property
    def name(self) -> str:
        """Return the display name."""
        ...

    async def run(self, command: Command) -> Ran:
        """Run a command until it ends or is stopped. Cancellation kills it and every process that it started."""
        ...

    def prepare(self, service: Service) -> AbstractAsyncContextManager[Start]:
        """Prepare a service and keep its resources while it runs. `process.py` starts it. Raises `BadField`."""
        ...

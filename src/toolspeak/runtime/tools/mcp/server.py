"""A server of tools, as the configuration describes it."""

from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class McpServer:
    """A command to start, or a URL to ask. Its environment and its headers may hold keys, and are never shown."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """All of it: the command inherits nothing else."""
    cwd: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tools: tuple[str, ...] = ()
    """The tools that are wanted; empty means all."""
    trust: bool = False
    """What it says of its tools (that one only reads) is believed."""
    reads: tuple[str, ...] = ()
    """Tools that only read: the user's own word."""
    seconds: float = SECONDS
    """To be started and to answer a call."""
    sandbox: bool = True
    """The command runs in a sandbox or not at all; `False` is the user's explicit word to run it with all rights."""
    network: bool = False
    """The command may use the network of this machine, loopback included."""
    folders: tuple[str, ...] = ()
    """Full paths of folders that the command may read and change."""
    read: tuple[str, ...] = ()
    """Full paths of files and folders that it may read, besides those that it needs to start."""
    home: str = ""
    """A folder that is its HOME and is kept between starts; without one, HOME is in memory."""
    journal: str = ""
    """A folder that records that the command runs, so that what it leaves in its folders is found after a crash."""
    missing: tuple[str, ...] = ()
    """Variables that it was to get, and that are not set."""

    @property
    def place(self) -> str:
        """Return a digest of what is started or asked: what was approved of one command is not so of another."""
        return sha256(msgspec.json.encode((self.command, self.args, self.url))).hexdigest()

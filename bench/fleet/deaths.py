"""Which answers a `kill -9` may have broken off: those that the killed process carried at that moment, and no other.

nginx writes the last gateway that it tried into each response (`x-carried-by`), and the connections of a process are
counted just before it is killed. So an answer is excused only if it was open at that moment, was carried by that
gateway, ended at once, and if the process had so many connections at all. nginx carries every answer.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

CARRIER = "x-carried-by"
"""The header with the address of the gateway; after a retry, with the addresses of all, the last one last."""
NOTICED_S = 1.0
"""Seconds within which a client notices a closed connection, if its event loop has nothing else to do."""
LATE = 2
"""The extra time, as a multiple of the longest delay of the clients' event loop: all clients share one loop, and when
hundreds of connections ended at once on a busy machine, the last was noticed after 4.3 s."""
_ESTABLISHED = "01"


@dataclass(frozen=True)
class Death:
    """A process was killed. `address` is its gateway's; nginx has none, since it carries every answer.

    The kernel closes its sockets between `at`, when the signal was sent, and `gone`. Times are seconds since the load
    began.
    """

    address: str
    at: float
    gone: float
    connections: int
    """Its connections at `at`, idle ones included."""
    delay: float = 0.0
    """The longest delay of the clients' event loop around that time."""

    @property
    def noticed_s(self) -> float:
        """Return the seconds within which all clients notice it."""
        return NOTICED_S + LATE * self.delay

    def carried(self, carrier: str, began: float, done: float) -> bool:
        """Return whether an answer was open here at the moment of the death, and ended with it."""
        was_open = began <= self.gone and self.at <= done <= self.gone + self.noticed_s
        return was_open and self.address in ("", carrier)


@dataclass(frozen=True)
class Delay:
    """The clients' event loop did something at `at` that was due `seconds` before."""

    at: float
    seconds: float


def longest_delay(delays: Iterable[Delay], death: Death) -> float:
    """Return the longest delay that began before all clients should have noticed a death, and ended after it."""
    around = (each for each in delays if each.at >= death.at and each.at - each.seconds <= death.gone + NOTICED_S)
    return max((each.seconds for each in around), default=0.0)


@dataclass(frozen=True)
class Cut:
    """An answer that broke off: its gateway, its begin and its end."""

    carrier: str
    began: float
    done: float


def death_of(cut: Cut, deaths: Iterable[Death]) -> Death | None:
    """Return the death that explains why an answer broke off; that of nginx takes precedence, if there are two."""
    found = [death for death in deaths if death.carried(cut.carrier, cut.began, cut.done)]
    return min(found, key=lambda death: death.address, default=None)


def too_many(cuts: Iterable[Cut], deaths: Sequence[Death]) -> list[str]:
    """Return the deaths that would explain more answers than the process had connections.

    Answers that began while the process was dying are not counted: its connections were counted before.
    """
    by_death = Counter(death for cut in cuts if (death := death_of(cut, deaths)) and cut.began <= death.at)
    return [
        f"{count} answers broke off at {death.at:.1f} s with {death.address or 'nginx'}, "
        f"which had {death.connections} connections"
        for death, count in by_death.items()
        if count > death.connections
    ]


def connections(port: int, pids: Iterable[int] | None = None) -> int:
    """Count the connections to a port of loopback: those that some processes have accepted, or all."""
    inodes = None if pids is None else {inode for pid in pids for inode in _sockets(pid)}
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    here = [line[9] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == _ESTABLISHED]
    return len(here) if inodes is None else sum(inode in inodes for inode in here)


def _sockets(pid: int) -> Iterable[str]:
    """Yield the inodes of a process's sockets."""
    for file in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = str(file.readlink())
        except OSError:  # closed since
            continue
        if target.startswith("socket:["):
            yield target[8:-1]

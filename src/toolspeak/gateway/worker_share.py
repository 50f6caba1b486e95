"""What the workers of one gateway share on their machine, and the link of each to the process that supervises them."""

import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.errors import BadConfig
from toolspeak.gateway.metrics_share import MetricsShare
from toolspeak.gateway.peer_traces import TracePeers
from toolspeak.gateway.tally import SharedActivity, SharedTally
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.local_store import LocalStore

_LARGEST: Final = 1 << 20
"""Bytes of a message of a worker."""


class WorkerShare:
    """Limits, turns, figures, sessions, responses and verdicts of all workers, and the way to the others' traces.

    The supervisor makes it in a private folder before it forks the first worker. A worker has a column of its own,
    which the next one gets after its end.
    """

    def __init__(self, folder: Path, columns: int) -> None:
        """Create the files in an empty folder, for this many processes at one time."""
        metrics, self._traces = folder / "metrics", folder / "traces"
        metrics.mkdir()
        self._traces.mkdir()
        self._state_file: Final = folder / "state.sqlite"
        self.metrics: Final = MetricsShare(metrics)
        self.tally: Final = SharedTally(folder / "limits.lock", columns)
        self._turns: Final = SharedTally(folder / "turns.lock", columns)
        LocalStore(self._state_file).close()  # workers that created it at the same time would lock each other out

    def begin(self, column: int) -> None:
        """Use a column, in the worker. Only then it has peers."""
        self.tally.column = self._turns.column = self.metrics.column = column
        self.peers = TracePeers(self._traces, column)

    def end(self, column: int) -> None:
        """Settle what a worker has left behind, in the supervisor."""
        self.tally.clear(column)
        self._turns.clear(column)
        self.metrics.end(column)

    def activity(self, clock: Clock = CLOCK) -> SharedActivity:
        """Return the users' turns of all workers, in the worker."""
        return SharedActivity(self._turns, clock)

    def open_store(self, clock: Clock = CLOCK) -> LocalStore:
        """Open the store of sessions, responses and verdicts, in the worker."""
        return LocalStore(self._state_file, clock)


class _Message(msgspec.Struct):
    """What a worker tells its supervisor: that it is ready, or else why it cannot start."""

    problems: tuple[str, ...] = ()
    """Mistakes of the configuration."""
    system: tuple[int, str, str] | None = None
    """Number, words and file of an error of the system."""


_decode = msgspec.json.Decoder(_Message).decode
_SIGN_OF_LIFE: Final = b"\n"
"""Whitespace, so that any number of them beside a message changes nothing."""


class WorkerLink:
    """The worker's end of the connection to its supervisor, with the sockets on which it listens."""

    def __init__(
        self, number: int, share: WorkerShare, sockets: Sequence[socket.socket], control: socket.socket
    ) -> None:
        """Take the number by which people know the worker."""
        self.number: Final = number
        self.share: Final = share
        self.sockets: Final = list(sockets)
        self.control: Final = control
        """Readable only when the supervisor is gone: it sends nothing."""
        self.is_ready = False

    def ready(self) -> None:
        """Tell the supervisor that this worker accepts connections."""
        self.is_ready = True
        self._send(_Message())

    def live(self) -> None:
        """Tell the supervisor that this worker is not stuck; if the supervisor reads nothing now, that is no fault."""
        with suppress(OSError):
            self.control.send(_SIGN_OF_LIFE, socket.MSG_DONTWAIT)

    def fail(self, error: BadConfig | OSError) -> None:
        """Tell the supervisor why this worker cannot start."""
        if isinstance(error, BadConfig):
            self._send(_Message(error.problems))
        else:
            self._send(_Message(system=(error.errno or errno.EIO, error.strerror or str(error), error.filename or "")))

    def _send(self, message: _Message) -> None:
        self.control.sendall(msgspec.json.encode(message) + _SIGN_OF_LIFE)


def read_message(control: socket.socket) -> BadConfig | OSError | bool:
    """Return what a worker says: True if it is ready or alive, why it cannot start, or False if it has ended."""
    data = control.recv(_LARGEST)
    if not data:
        return False
    said = data.strip(_SIGN_OF_LIFE)
    message = _decode(said) if said else _Message()
    if message.problems:
        return BadConfig(*message.problems)
    if message.system is not None:
        number, words, file = message.system
        return OSError(number, words, file or None)
    return True

"""The journal: one entry per running command or service, so that its leftovers are found after a crash.

The guard writes the entry when it starts, and replaces it with its report when it is done. Toolspeak and the guard
both hold a shared lock on the entry's lock file. An entry whose lock can be taken exclusively has lost both: the kernel
releases the lock of a killed process, so no process id has to be trusted.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import msgspec

from toolspeak.agent.sandbox.protected import ProtectedPath, ProtectionRule
from toolspeak.agent.sandbox.quarantine import Copies, settle
from toolspeak.runtime.clock import CLOCK
from toolspeak.text.display import visible

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeftoverReport:
    """The leftovers in one folder. `stopped` is the reason if the guard stopped the command; `notes` are for people."""

    folder: Path
    stopped: str = ""
    notes: tuple[str, ...] = ()


class JournalEntry:
    """The entry of one command or service."""

    def __init__(self, path: Path) -> None:
        """Take the path of the file that the guard writes."""
        self.path: Final = path

    @property
    def stopped(self) -> str:
        """The reason why the guard stopped the program; empty while it runs, or if it was not stopped."""
        return visible(self._read().get("stopped", ""))

    def reports(self) -> list[LeftoverReport]:
        """Return the guard's report for each folder. If the guard was killed, do its work now, and report that."""
        said = self._read()
        if said.get("state") == "ended":
            stopped = visible(said["stopped"])
            return [LeftoverReport(Path(each["folder"]), stopped, _visible(each["notes"])) for each in said["folders"]]
        return [
            LeftoverReport(folder := Path(each["folder"]), "", _visible(_finish(folder, each)))
            for each in said.get("folders", ())
        ]

    def _read(self) -> dict[str, Any]:
        """Return the entry's content; an empty dict if the guard never started."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            return {}

    def remove(self) -> None:
        """Delete the entry with its lock and its temporary file."""
        for suffix in (".json", ".json.new", ".lock"):
            with suppress(OSError):
                self.path.with_suffix("").with_suffix(suffix).unlink()


def _visible(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(visible, notes))


def _finish(folder: Path, said: dict[str, Any]) -> Iterator[str]:
    """Do the work of a guard that was killed: restore copies, then rename forbidden files. Yield the notes."""
    if folder.is_dir():
        if said["copies"]:
            yield from Copies.load(str(folder), said["copies"]).put_back()
        known = {
            path: ProtectedPath(ProtectionRule(*each[0]), each[1], tuple(each[2]))
            for path, each in said["known"].items()
        }
        yield from settle(str(folder), known, set())


@contextmanager
def open_entry(journal: Path | None) -> Generator[JournalEntry]:
    """Create an entry for a command, and hold its lock. On exit it stays if the guard has written an unread report."""
    folder, temporary = _folder(journal)
    entry = JournalEntry(folder / f"{CLOCK.fresh_id()}.json")
    try:
        with _locked(entry.path.with_suffix(".lock"), fcntl.LOCK_SH):
            yield entry
    finally:
        if not entry.path.exists():  # the guard never started, or its report was read
            entry.remove()
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)


def _folder(journal: Path | None) -> tuple[Path, bool]:
    """Return the folder of entries, and whether it is temporary. A temporary journal does not survive a crash."""
    if journal is not None:
        with suppress(OSError):
            journal.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(journal, os.W_OK):
                return journal, False
    return Path(mkdtemp(prefix="toolspeak-")), True


def recover(journal: Path | None) -> list[LeftoverReport]:
    """Settle and remove the entries whose toolspeak and guard are gone. Return the reports that have notes.

    Forbidden files are renamed when this returns. An entry that is still locked belongs to a running command.
    """
    found = list[LeftoverReport]()
    for path in sorted(journal.glob("*.json")) if journal is not None else ():
        entry = JournalEntry(path)
        # A lock that cannot be taken means that toolspeak or the guard of this command still lives: the entry is
        # theirs.
        with suppress(OSError), _locked(path.with_suffix(".lock"), fcntl.LOCK_EX | fcntl.LOCK_NB):
            reports = entry.reports()
            entry.remove()
            found += [each for each in reports if each.notes]
    return found


def warn(reports: Iterable[LeftoverReport], actor: str = "A command that toolspeak could not end") -> None:
    """Log changes in folders where no command's result can report them."""
    for report in reports:
        for note in report.notes:
            _LOG.warning("%s has changed %s: %s", actor, report.folder, note)


@contextmanager
def _locked(path: Path, how: int) -> Generator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)

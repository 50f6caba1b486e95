"""The journal: an entry for each command or service that runs, so that what it left is found after a crash.

The guard writes the entry when it starts and replaces it with its report when it is done. Toolspeak and the guard both
hold a lock on the entry; an entry that can be locked belongs to neither any more.
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
    """What a guard has found in a folder. `stopped` says why it stopped the command; `notes` are for people."""

    folder: Path
    stopped: str = ""
    notes: tuple[str, ...] = ()


class JournalEntry:
    """The entry of one command."""

    def __init__(self, path: Path) -> None:
        """Take the file that the guard writes."""
        self.path: Final = path

    @property
    def stopped(self) -> str:
        """Why the guard has stopped the program, if it has ended and was stopped."""
        return visible(self._read().get("stopped", ""))

    def reports(self) -> list[LeftoverReport]:
        """Return what the guard has found in each folder; if it was killed itself, look now."""
        said = self._read()
        if said.get("state") == "ended":
            stopped = visible(said["stopped"])
            return [LeftoverReport(Path(each["folder"]), stopped, _visible(each["notes"])) for each in said["folders"]]
        return [
            LeftoverReport(folder := Path(each["folder"]), "", _visible(_finish(folder, each)))
            for each in said.get("folders", ())
        ]

    def _read(self) -> dict[str, Any]:
        """Return what the guard has written; nothing if it never started."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            return {}

    def remove(self) -> None:
        """Forget it."""
        for suffix in (".json", ".json.new", ".lock"):
            with suppress(OSError):
                self.path.with_suffix("").with_suffix(suffix).unlink()


def _visible(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(visible, notes))


def _finish(folder: Path, said: dict[str, Any]) -> Iterator[str]:
    """Do what a guard could not do any more."""
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
    """Make an entry for a command; it is removed afterwards unless it holds what was not read."""
    folder, temporary = _folder(journal)
    entry = JournalEntry(folder / f"{CLOCK.fresh_id()}.json")
    try:
        with _locked(entry.path.with_suffix(".lock"), fcntl.LOCK_SH):
            yield entry
    finally:
        if not entry.path.exists():  # no guard was started
            entry.remove()
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)


def _folder(journal: Path | None) -> tuple[Path, bool]:
    """Return where entries are, and whether that is only for now: without a journal nothing is found after a crash."""
    if journal is not None:
        with suppress(OSError):
            journal.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(journal, os.W_OK):
                return journal, False
    return Path(mkdtemp(prefix="toolspeak-")), True


def recover(journal: Path | None) -> list[LeftoverReport]:
    """Return what commands have left whose toolspeak was killed, and forget it; what is unsafe is out of use then."""
    found = list[LeftoverReport]()
    for path in sorted(journal.glob("*.json")) if journal is not None else ():
        entry = JournalEntry(path)
        with suppress(OSError), _locked(path.with_suffix(".lock"), fcntl.LOCK_EX | fcntl.LOCK_NB):
            reports = entry.reports()
            entry.remove()
            found += [each for each in reports if each.notes]
    return found


def warn(reports: Iterable[LeftoverReport], actor: str = "A command that toolspeak could not end") -> None:
    """Log what was changed in folders, where no result of a command can tell it."""
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

"""Access to the one folder that a run's tools may see and change (RUN-4).

A path is split, and each part is opened relative to the descriptor of its parent, without following links. So there is
no moment between a check and its use in which a concurrent command could replace a folder by a link. Paths are compared
by their parts, not as strings: `/srv/a` is no prefix of `/srv/ab`. Links are not followed even if they lead inside.
"""

import os
import stat
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final, NoReturn

from toolspeak.agent.sandbox.protected import (
    BARE_REASON,
    KEEP,
    REFUSE,
    is_bare,
    is_git,
    is_part_of_bare,
    rule_for_path,
)
from toolspeak.runtime.clock import CLOCK
from toolspeak.text.display import visible

LARGEST: Final = 8 << 20
"""Maximum bytes of a file that is read or written."""
MOST_NAMES: Final = 1000
"""Maximum names of a folder that are shown."""
_LONGEST_PATH: Final = 4096
_LONGEST_NAME: Final = 255
_SHOWN_NAMES: Final = 20
# O_NONBLOCK: opening a named pipe must not block. O_NOCTTY: a terminal must not become ours.
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS: Final = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class BadPath(Exception):
    """A path that cannot be used. The message has the reason, and the names that exist instead."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder. `depth` is 0 for the entries of the listed folder itself."""

    name: str
    depth: int
    kind: str
    """`file`, `folder`, or another kind."""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder by its path, which must contain no link."""

    path: Path

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises `BadPath`."""
        *parents, name = self._file(path)
        with self._entered(parents) as folder:
            return _read(folder, name, path)

    def write(self, path: str, data: bytes) -> bool:
        """Write a file atomically, and create its parent folders. Return whether it is new. Raises `BadPath`."""
        if len(data) > LARGEST:
            raise BadPath(f"the content has {len(data)} bytes; at most {LARGEST} are written")
        parts = self._file(path)
        rule = rule_for_path(parts)
        if rule is not None and (rule.action == REFUSE or (rule.action == KEEP and self._exists(parts[0]))):
            raise BadPath(f"{visible(path)!r} is read-only here: {rule.reason}. Ask the person to change it")
        # A bare repository needs no forbidden name: `HEAD`, `objects` and `refs` in any folder are enough for git.
        self._refuse_bare(parts)
        with self._entered(parts[:-1], make=True) as folder:
            return _write(folder, parts[-1], path, data)

    def report(self, path: str) -> str:
        """Return why programs on the host obey this file; empty if they do not."""
        rule = rule_for_path(self._file(path))
        return rule.reason if rule is not None else ""

    def entries(self, path: str, depth: int, most: int) -> list[FolderEntry]:
        """Return at most `most` entries of a folder and its subfolders down to `depth`. `.git` is not entered."""
        with self._entered(self._parts(path)) as folder, closing(_entries(folder, depth, 0)) as found:
            return list(islice(found, most))

    def _exists(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    def _refuse_bare(self, parts: tuple[str, ...]) -> None:
        """Raise `BadPath` for a file in a bare repository, or one that would turn its folder into one."""
        for count in range(len(parts)):
            if is_part_of_bare(parts[count]) and is_bare({*self._names_in(parts[:count]), parts[count]}):
                raise BadPath(f"{visible('/'.join(parts))!r} is not written: {BARE_REASON}")

    def _names_in(self, parts: tuple[str, ...]) -> list[str]:
        try:
            with self._entered(parts) as folder:
                return os.listdir(folder)  # noqa: PTH208 # it is a descriptor
        except BadPath:  # the folder does not exist yet
            return []

    def _file(self, path: str) -> tuple[str, ...]:
        if not (parts := self._parts(path)):
            raise BadPath(f"{visible(path)!r} is the folder itself, not a file in it")
        return parts

    def _parts(self, path: str) -> tuple[str, ...]:
        """Split a path into its parts below the folder. `..` and the folder's own absolute path are resolved."""
        if problem := _problem(path):
            raise BadPath(problem)
        given, own = PurePosixPath(path).parts, self.path.parts
        if path.startswith("/"):
            if given[: len(own)] != own:
                raise BadPath(f"{visible(path)!r} is outside; say it as seen from the folder")
            given = given[len(own) :]
        parts: list[str] = []
        for part in given:
            if part != "..":
                parts.append(part)
            elif not parts:
                raise BadPath(f"{visible(path)!r} leads out of the folder")
            else:
                parts.pop()
        return tuple(parts)

    @contextmanager
    def _entered(self, parts: Iterable[str], *, make: bool = False) -> Generator[int]:
        """Open a subfolder part by part, and yield its descriptor."""
        folder, walked = os.open(self.path, _FOLDER), PurePosixPath()
        try:
            for part in parts:
                inner = _step(folder, part, str(walked), make=make)
                os.close(folder)
                folder, walked = inner, walked / part
            yield folder
        finally:
            os.close(folder)


def _problem(path: str) -> str:
    if "\0" in path:
        return "a path has no NUL character"
    if path.startswith("~"):
        return f"{visible(path)!r}: there is no home here; say it as seen from the folder"
    try:
        data = path.encode()
    except UnicodeEncodeError:
        return "a path is valid text, without halves of surrogates"
    if len(data) > _LONGEST_PATH or any(len(part) > _LONGEST_NAME for part in data.split(b"/")):
        return f"the path is too long: at most {_LONGEST_NAME} bytes a name, {_LONGEST_PATH} in all"
    return ""


def _step(folder: int, name: str, walked: str, *, make: bool) -> int:
    made = make and _made(folder, name)
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        _refuse(folder, name, walked, error, "a folder")
    if made:
        _give(inner, os.fstat(folder))
    return inner


def _made(folder: int, name: str) -> bool:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _read(folder: int, name: str, path: str) -> bytes:
    parent = str(PurePosixPath(path).parent)
    _must_be_file(folder, name, parent)
    try:
        file = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        _refuse(folder, name, parent, error, "a file")
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):  # it was replaced after the check
            raise _other(name, found.st_mode, "a file")
        data = opened.read(LARGEST + 1) if found.st_size <= LARGEST else b""
    if found.st_size > LARGEST or len(data) > LARGEST:
        raise BadPath(f"{visible(name)!r} has {max(found.st_size, len(data))} bytes; at most {LARGEST} are read")
    return data


def _write(folder: int, name: str, path: str, data: bytes) -> bool:
    """Write a temporary file and rename it. Other hard links to the old file keep its content."""
    before = _must_be_file(folder, name, str(PurePosixPath(path).parent), missing=True)
    beside = f".toolspeak-{CLOCK.fresh_id()}"
    file = os.open(beside, _MAKE, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            if before is not None:
                # Without setuid bits: they must not pass from the old content to the new.
                os.fchmod(file, stat.S_IMODE(before.st_mode) & 0o777)
            _give(file, before or os.fstat(folder))
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
    return before is None


def _give(made: int, like: os.stat_result) -> None:
    """Give a file that root creates to the owner of the old file or the folder: the shell does not run as root."""
    if os.geteuid() == 0:
        os.fchown(made, like.st_uid, like.st_gid)


def _must_be_file(folder: int, name: str, walked: str, *, missing: bool = False) -> os.stat_result | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError as error:
        if missing:
            return None
        _refuse(folder, name, walked, error, "a file")
    if not stat.S_ISREG(found.st_mode):
        raise _other(name, found.st_mode, "a file")
    return found


def _refuse(folder: int, name: str, walked: str, error: OSError, wanted: str) -> NoReturn:
    """Raise `BadPath` with the reason why something cannot be opened, or with the names that exist instead."""
    shown, place = visible(name), "the folder" if walked in ("", ".") else repr(visible(walked))
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        raise BadPath(f"there is no {shown!r} in {place}; {_instead(folder, name)}") from None
    if isinstance(error, PermissionError):
        raise BadPath(f"{shown!r} may not be opened: {error.strerror}") from None
    raise _other(name, found.st_mode, wanted) from None


def _other(name: str, mode: int, wanted: str) -> BadPath:
    why = "links are not followed" if stat.S_ISLNK(mode) else f"not {wanted}"
    return BadPath(f"{visible(name)!r} is {_kind(mode)}, {why}")


def _instead(folder: int, name: str) -> str:
    names = _names(folder)
    if not names:
        return "nothing is there"
    if near := get_close_matches(name, names, n=3):
        return f"did you mean {' or '.join(repr(visible(each)) for each in near)}?"
    more = " and more" if len(names) > _SHOWN_NAMES else ""
    return f"there are: {', '.join(visible(each) for each in names[:_SHOWN_NAMES])}{more}"


def _kind(mode: int) -> str:
    return next((name for tells, name in _KINDS if tells(mode)), "a file")


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as found:
        return sorted(each.name for each in islice(found, MOST_NAMES + 1))


def _entries(folder: int, depth: int, level: int) -> Generator[FolderEntry]:
    for name in _names(folder):
        entry = _entry(folder, name, level)
        if entry is not None:
            yield entry
            if entry.kind == "folder" and level + 1 < depth and not is_git(name):
                yield from _inside(folder, name, depth, level + 1)


def _entry(folder: int, name: str, level: int) -> FolderEntry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:  # it was removed in the meantime
        return None
    kind = "link" if stat.S_ISLNK(found.st_mode) else _kind(found.st_mode).removeprefix("a ")
    return FolderEntry(name, level, kind, found.st_size)


def _inside(folder: int, name: str, depth: int, level: int) -> Generator[FolderEntry]:
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:  # removed, forbidden, or no folder any more
        return
    try:
        yield from _entries(inner, depth, level)
    finally:
        os.close(inner)

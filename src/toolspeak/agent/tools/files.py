"""Tools for files in the run's folder: read, write, edit, list (RUN-4).

Reading and listing change nothing, and writing a file twice gives the same file. An edit must not be repeated: if the
new text contains the old one, a second execution would insert it twice.
"""

import asyncio
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from threading import Lock
from typing import Annotated, Final

from msgspec import Meta

from toolspeak.agent.tools.action import Action, ToolEffect, ToolOutput, Workplace, text_output
from toolspeak.agent.tools.folder import LARGEST, MOST_NAMES, BadPath, Folder, FolderEntry
from toolspeak.agent.tools.functions import action_of, tool
from toolspeak.text.display import cut, tamed, visible

_LINES: Final = 2000
_DEEPEST: Final = 8
_LONGEST_LINE: Final = 200
_ALIKE: Final = 0.6
"""The least part of a text that a line must have in common with it to be shown."""
_NOTE: Final = 200
"""Bytes that are reserved for the note about omitted lines."""

FilePath = Annotated[str, "The path of the file, as seen from the run's folder"]
FolderPath = Annotated[str, "The folder, as seen from the run's folder, which is ."]
FirstLine = Annotated[int, Meta(ge=0), "Leave it out. Only to go on in a long file: the first line to show, from 1"]
Lines = Annotated[int, Meta(ge=1, le=_LINES), "Leave it out to see all lines. How many lines to show"]
Depth = Annotated[int, Meta(ge=1, le=_DEEPEST), "How many levels of folders to show"]


def actions(workplace: Workplace) -> Sequence[Action]:
    """Return the file tools of a workplace."""
    files = Files(Folder(workplace.folder.resolve()), workplace.output)
    return tuple(action_of(each) for each in (files.read_file, files.write_file, files.edit_file, files.list_files))


class Files:
    """The files of one folder. Results have at most `output` bytes."""

    def __init__(self, folder: Folder, output: int) -> None:
        """Take the folder, and the maximum bytes of a result."""
        self._folder: Final = folder
        self._output: Final = output
        self._changing: Final = Lock()  # held from the read to the write of an edit: parallel edits would be lost

    @tool(effect=ToolEffect.READS, contained=True)
    async def read_file(self, path: FilePath, offset: FirstLine = 1, limit: Lines = _LINES) -> ToolOutput:
        """Read a text file and show its lines."""
        return await _done(lambda: self._read(path, max(offset, 1), limit))

    @tool(effect=ToolEffect.REPEATS, contained=True)
    async def write_file(self, path: FilePath, content: Annotated[str, "The whole content of the file"]) -> ToolOutput:
        """Write a text file as a whole, with the folders that lead to it. What was in it is lost."""
        return await _done(lambda: self._write(path, content))

    @tool(effect=ToolEffect.ONCE, contained=True)
    async def edit_file(
        self,
        path: FilePath,
        old: Annotated[
            str, Meta(min_length=1), "The text as it is in the file now, letter by letter; it must occur exactly once"
        ],
        new: Annotated[str, "The text to put in its place"],
        all: Annotated[bool, "Replace every occurrence"] = False,  # noqa: A002, FBT002 # a word for the model, sent by name
    ) -> ToolOutput:
        """Replace a text in a file. Read the file first, and copy `old` from it."""
        return await _done(lambda: self._edit(path, old, new, every=all))

    @tool(effect=ToolEffect.READS, contained=True)
    async def list_files(self, path: FolderPath = ".", depth: Depth = 2) -> ToolOutput:
        """List the files and folders in a folder."""
        return await _done(lambda: self._list(path, depth))

    def _read(self, path: str, first: int, limit: int) -> str:
        lines = _text(self._folder.read(path), path).split("\n")
        if lines[-1] == "":
            lines.pop()
        if first > max(len(lines), 1):
            raise BadPath(f"{visible(path)!r} has {len(lines)} lines; line {first} is past its end")
        shown = self._page(lines[first - 1 : first - 1 + limit])
        last = first - 1 + len(shown)
        text = "\n".join(shown)
        if first == 1 and last == len(lines):
            return text or f"{visible(path)!r} is empty."
        more = f"; go on with offset={last + 1}" if last < len(lines) else ""
        return f"{text}\n[lines {first} to {last} of {len(lines)}{more}]"

    def _page(self, lines: Sequence[str]) -> list[str]:
        """Return as many lines as fit into a result; at least one, which is cut if needed."""
        left, page = max(self._output - _NOTE, _NOTE), list[str]()
        for line in map(tamed, lines):
            left -= len(line.encode()) + 1
            if left < 0:
                return page or [cut(line, max(self._output - _NOTE, _NOTE))]
            page.append(line)
        return page

    def _write(self, path: str, content: str) -> str:
        with self._changing:
            new = self._folder.write(path, _bytes(content))
        text = f"{visible(path)!r} was {'made' if new else 'written anew'}: {_count(len(content.splitlines()))}."
        return text + self._warning(path)

    def _warning(self, path: str) -> str:
        reason = self._folder.report(path)
        return f"\n[Tell the person before they use the folder: {reason}.]" if reason else ""

    def _edit(self, path: str, old: str, new: str, *, every: bool) -> str:
        with self._changing:
            return self._edited(path, old, new, every=every)

    def _edited(self, path: str, old: str, new: str, *, every: bool) -> str:
        text = _decoded(self._folder.read(path), path)
        if old == new:
            raise BadPath(f"old and new are the same, so nothing would change{_closest(text, old)}")
        if "\r\n" in text and "\r" not in old + new:  # `read_file` shows these lines without \r, so the model omits it
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        found = text.count(old)
        if not found:
            again = "; read it again and copy it letter by letter"
            raise BadPath(f"the old text is not in {visible(path)!r}{_closest(text, old) or again}")
        if found > 1 and not every:
            raise BadPath(
                f"the old text is {found} times in {visible(path)!r}; take more of its lines, or say all=true"
            )
        if len(text) + found * (len(new) - len(old)) > LARGEST:  # checked before the text is built in memory
            raise BadPath(f"{visible(path)!r} would be too large; at most {LARGEST} bytes are written")
        self._folder.write(path, _bytes(text.replace(old, new)))
        return f"{visible(path)!r} was edited in {found} {'place' if found == 1 else 'places'}." + self._warning(path)

    def _list(self, path: str, depth: int) -> str:
        entries = self._folder.entries(path, depth, MOST_NAMES + 1)
        lines = self._page([_line(entry) for entry in entries[:MOST_NAMES]])
        if len(lines) < len(entries):
            lines.append(f"[the first {len(lines)} only; list a folder in it, or say depth=1]")
        return "\n".join(lines) or f"{visible(path)!r} is empty."


def _count(lines: int) -> str:
    return f"{lines} line{'' if lines == 1 else 's'}"


async def _done(work: Callable[[], str]) -> ToolOutput:
    """Run the work in a thread. A problem with a path becomes an error result."""
    try:
        return text_output(await asyncio.to_thread(work))
    except BadPath as error:
        return text_output(f"{error}.".replace("?.", "?"), is_error=True)
    except OSError as error:  # its full message would reveal the host path of the folder
        return text_output(f"It cannot be done: {error.strerror}.", is_error=True)


def _closest(text: str, old: str) -> str:
    """Return the line of a file that is most like a text, as words for the model; empty if none is alike.

    Small models repeat the same wrong text until they give up; with the line before them, they copy it.
    """
    wanted = max(old.splitlines(), key=len, default="").strip()[:_LONGEST_LINE]
    matcher, best = SequenceMatcher(b=wanted, autojunk=False), (_ALIKE, "")
    pieces = {wanted[start : start + 3] for start in range(len(wanted) - 2)}
    for line in text.splitlines()[:_LINES]:
        if not any(piece in line for piece in pieces):  # a comparison is slow, and most lines have nothing in common
            continue
        matcher.set_seq1(line[:_LONGEST_LINE])
        same = sum(block.size for block in matcher.get_matching_blocks() if block.size > 1) / max(len(wanted), 1)
        best = max(best, (same, line[:_LONGEST_LINE]))
    return f"; the most similar line of the file is {tamed(best[1])!r}" if best[1] else ""


def _decoded(data: bytes, path: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BadPath(f"{visible(path)!r} is binary, {len(data)} bytes")
    return text


def _text(data: bytes, path: str) -> str:
    return _decoded(data, path).replace("\r\n", "\n")


def _bytes(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise BadPath("the content is not valid text: it has a half of a surrogate") from None


def _line(entry: FolderEntry) -> str:
    name = "  " * entry.depth + visible(entry.name).replace("\n", "\\n").replace("\t", "\\t")
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {entry.size} bytes"
        case kind:
            return f"{name}  ({kind})"

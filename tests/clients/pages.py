"""The lines that pages tell their readers to write: the client tests run clients with these, and no others.

A block that is the content of a file has the file's name before it, in a paragraph of its own that ends in a colon.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.clients.install import ROOT

JAVASCRIPT = ROOT / "docs" / "javascript.md"
APPS = ROOT / "docs" / "apps.md"
URL = "http://127.0.0.1:4141"
MODEL = "MODEL"
_FILE = re.compile(r"^`([^`\n]+)`[^\n]*:\n\n```(?:json|yaml|js)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """What one section of a page tells."""

    title: str
    text: str

    @property
    def files(self) -> dict[str, str]:
        """The files by their names, as the page has them."""
        return dict(_FILE.findall(self.text))

    @property
    def commands(self) -> list[list[str]]:
        """The commands of the shell, a line each, split into words."""
        return [shlex.split(line) for block in _SHELL.findall(self.text) for line in block.splitlines()]

    def command(self, *first: str) -> list[str]:
        """Return the one command that begins with these words."""
        [found] = [words for words in self.commands if tuple(words[: len(first)]) == first]
        return found

    @property
    def exports(self) -> dict[str, str]:
        """The variables that the commands set."""
        words = [word for command in self.commands if command[0] == "export" for word in command[1:]]
        return dict(word.split("=", 1) for word in words)


def sections(page: Path) -> Iterator[Section]:
    """Yield the sections of a page, each from its heading to the next of any level."""
    parts = re.split(r"^##+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        yield Section(title, text)


def section(page: Path, title: str) -> Section:
    """Return the section with this heading."""
    return next(each for each in sections(page) if each.title == title)


def programs() -> dict[str, str]:
    """Return the files of the page about JavaScript by their names."""
    return {name: text for each in sections(JAVASCRIPT) for name, text in each.files.items()}


def filled(text: str, url: str, model: str) -> str:
    """Put the address of a gateway and the name of a model in the place of those of a page."""
    return text.replace(URL, url).replace(MODEL, model)

"""Collects the pages of the site from the repository into one folder, as Zensical reads them.

The Markdown in the repository stays readable on its own, so it differs from the site's in three ways: pages at the top
of the repository are outside docs/, some links lead to files that are no pages, and GitHub draws Mermaid blocks. The
copy has the top pages beside the others, images in a separate folder, and a table for each Mermaid block: Zensical
would load Mermaid from another host. It also has a blank line before each list and four spaces before each nested
item, which Python's Markdown wants and GitHub's does not.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "mkdocs.yml"
DOCS = ROOT / "docs"
TOP_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-model.md",
}
"""Pages at the top of the repository, and their names on the site."""

IMAGES = {".png", ".svg"}
ASSETS = {*IMAGES, ".json"}

FENCED = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
MERMAID = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
ARROW = re.compile(r"^\s+(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)
LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
NESTED_ITEM = re.compile(r"^ {2,3}(?=(?:[-*]|\d+\.) )", re.MULTILINE)
SECTION = re.compile(r"^  - ([^:]+):$")
ENTRY = re.compile(r"^ +- (?:[^:]+: )?(\S+\.md)$")


@dataclass(frozen=True)
class Section:
    """A part of the navigation, with its pages in order."""

    name: str
    pages: tuple[str, ...]


def sections() -> list[Section]:
    """Return the navigation of mkdocs.yml; pages before the first part are in a section without a name."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in SETTINGS.read_text(encoding="utf-8").partition("\nnav:\n")[2].splitlines():
        if section := SECTION.match(line):
            found.append((section[1], []))
        elif entry := ENTRY.match(line):
            found[-1][1].append(entry[1])
    return [Section(name, tuple(pages)) for name, pages in found]


def sources() -> dict[str, Path]:
    """Return all pages: their path on the site, and their file."""
    pages = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return pages | {name: ROOT / file for file, name in TOP_PAGES.items()}


def collect(folder: Path) -> None:
    """Copy all pages and assets into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, source in sources().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_page(name, source, folder), encoding="utf-8")
    for asset in DOCS.rglob("*"):
        if asset.suffix in {*ASSETS, ".css"}:
            _copy(asset, folder / asset.relative_to(DOCS))


def _page(name: str, source: Path, folder: Path) -> str:
    text = MERMAID.sub(lambda found: "\n".join(_arrow_table(found[1])), source.read_text(encoding="utf-8"))
    pieces = FENCED.split(text)
    return "".join(
        piece if piece.startswith("```") else LINK.sub(lambda link: _link(link, name, source, folder), _lists(piece))
        for piece in pieces
    )


def _lists(text: str) -> str:
    lines: list[str] = []
    for line in NESTED_ITEM.sub("    ", text).split("\n"):
        before = lines[-1] if lines else ""
        if LIST_ITEM.match(line) and before and not before.startswith(" ") and not LIST_ITEM.match(before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _arrow_table(diagram: str) -> Iterator[str]:
    yield "| from | to | when |\n| --- | --- | --- |"
    for start, end, when in ARROW.findall(diagram):
        cells = ["" if state == "[*]" else f"`{state}`" for state in (start, end)]
        yield f"| {cells[0] or 'start of the turn'} | {cells[1] or 'end of the turn'} | {when or 'always'} |"
    yield ""


def _link(link: re.Match[str], name: str, source: Path, folder: Path) -> str:
    """Map a link to the page or asset of the site; a link to another file of the repository becomes its text."""
    mark, text, path, anchor = link.groups(default="")
    target = (source.parent / path).resolve()
    if not target.exists():
        return link[0]  # Zensical reports it as a dead link
    inside = target.relative_to(ROOT)
    if inside.parts[0] == "docs":
        site_path = inside.relative_to("docs")
    elif inside.name in TOP_PAGES:
        site_path = Path(TOP_PAGES[inside.name])
    elif target.suffix in ASSETS:
        site_path = Path("files") / inside.name
        _copy(target, folder / site_path)
    else:
        return text
    up = "../" * (len(PurePosixPath(name).parts) - 1)
    return f"{mark}[{text}]({up}{site_path.as_posix()}{anchor})"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)

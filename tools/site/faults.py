"""Finds the faults of a built site: dead links, loads from other hosts, Markdown that was not rendered, gaps."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from tools.site.pages import Section

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("source", "src"),
    ("source", "srcset"),
    ("iframe", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("use", "href"),
    ("video", "src"),
    ("audio", "src"),
    ("link", "href"),
}
"""Attributes whose address the browser loads by itself."""
LOADERS = {"mermaid", "glightbox", "arithmatex", "pyodide"}
"""Classes for which the theme's script loads a library from another host."""
ANOTHER_HOST = re.compile(r"^(?:https?:)?//")
LOADED_BY_STYLE = re.compile(r"""url\(\s*["']?(?:https?:)?//|@import""")
UNRENDERED = re.compile(r"^(?:- |\* |\d+\. |\|.*\|$|```|#+ |> )", re.MULTILINE)


class Page(HTMLParser):
    """The links, loads and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.loaders: set[str] = set()
        self.styles: list[str] = []
        self.paragraphs: list[str] = []
        self._open: list[str] | None = None
        self._in_style = self._in_code = False
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.loaders |= LOADERS & set(values.get("class", "").split())
        self.loads += [value for name, value in values.items() if (tag, name) in LOADED]
        self.styles += [values["style"]] if "style" in values else []
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self._in_style |= tag == "style"
        self._in_code |= tag == "code"
        if tag == "p":
            self._open = []

    @override
    def handle_endtag(self, tag: str) -> None:
        self._in_style &= tag != "style"
        self._in_code &= tag != "code"
        if tag == "p" and self._open is not None:
            self.paragraphs.append("".join(self._open))
            self._open = None

    @override
    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.styles.append(data)
        if self._open is not None and not self._in_code:
            self._open.append(data)


@cache
def page_at(path: Path) -> Page:
    """Return a page of the site, read once."""
    return Page(path.read_text(encoding="utf-8"))


def faults(site: Path, sections: list[Section], sources: set[str]) -> Iterator[str]:
    """Yield each fault as one line."""
    named = [name for section in sections for name in section.pages]
    yield from (f"{name}: not in the navigation of mkdocs.yml" for name in sorted(sources - set(named)))
    yield from (
        f"{name}: twice in the navigation" for name in sorted({name for name in named if named.count(name) > 1})
    )
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        page = page_at(path)
        yield from (f"{name}: {fault}" for fault in _loads(page))
        if name != "404.html":  # a server shows it under any path, so its links are absolute
            yield from (f"{name}: {fault}" for fault in _links(page, path, site))
            yield from (f"{name}: Markdown is left in: {found!r}" for found in _unrendered(page))
            if not path.with_suffix(".md").is_file():
                yield f"{name}: no Markdown twin"
    yield from _style_sheets(site)


def _loads(page: Page) -> Iterator[str]:
    yield from (f"loads {address} from another host" for address in page.loads if ANOTHER_HOST.match(address))
    yield from (f"class {name!r} makes the theme load a library from another host" for name in sorted(page.loaders))
    yield from (f"style loads from another host: {text[:80]}" for text in page.styles if LOADED_BY_STYLE.search(text))


def _links(page: Page, path: Path, site: Path) -> Iterator[str]:
    for link in [*page.links, *(address for address in page.loads if not ANOTHER_HOST.match(address))]:
        split = urlsplit(link)
        if split.scheme or split.netloc:
            continue
        target = (path.parent / unquote(split.path)).resolve() if split.path else path
        if target == site:
            target = site / "index.html"
        if not target.is_file():
            yield f"dead link: {link}"
        elif split.fragment and target.suffix == ".html" and unquote(split.fragment) not in page_at(target).anchors:
            yield f"dead anchor: {link}"


def _unrendered(page: Page) -> Iterator[str]:
    for paragraph in page.paragraphs:
        if found := UNRENDERED.search(paragraph):
            yield paragraph[found.start() :][:60]


def _style_sheets(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*.css")):
        if found := LOADED_BY_STYLE.search(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: {found[0]} loads from another host"

"""The catalogue for people, and for programs.

  model               tools    what toolspeak does

ollama  http://127.0.0.1:11434
* qwen2.5-coder:0.5b  unknown  native, else emulated (hermes)
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolspeak.cli._catalogue import Entry, Shelf
from toolspeak.cli.terminal import Paint, cut, sign, visible
from toolspeak.engine.plan import Plan, Strategy, Way
from toolspeak.facts.model import Support
from toolspeak.ir.json import JsonObject

_COLORS: Final = {Support.NATIVE: "green", Support.LEAKS: "yellow", Support.NONE: "yellow", Support.UNKNOWN: ""}
_HEADS: Final = ("model", "tools", "what toolspeak does")
_INDENT, _GAP = "  ", "  "
_LEAST: Final = 16
"""Cells that a name has, however narrow the terminal is."""
_DEFAULT: Final = "* is asked when nobody knows the name that a client asks for"


class Table:
    """How it looks: one width for the names of all upstreams."""

    def __init__(self, shelves: Sequence[Shelf], paint: Paint, *, why: bool = False) -> None:
        """Measure the names; those that leave no room for the rest are cut."""
        self._paint = paint
        self._why = why
        self._shelves = shelves
        rows = [row for shelf in shelves for row in map(_cells, shelf.entries)]
        names, tools, deeds = (max(map(len, column)) for column in zip(_HEADS, *rows, strict=True))
        room = max(paint.width - tools - deeds - 3 * len(_GAP), _LEAST) if paint.width else names
        self._widths: Final = (min(names, room), tools)

    def head(self) -> Iterator[str]:
        """Say what the columns are, if there are any."""
        if any(shelf.entries for shelf in self._shelves):
            yield self._paint.ink(_INDENT + self._row(_HEADS), dim=True)
            yield ""

    def shelf(self, shelf: Shelf) -> Iterator[str]:
        """Write an upstream, and its models."""
        name, url = visible(shelf.upstream.name), visible(shelf.upstream.url)
        yield f"{self._paint.ink(name, bold=True)}{_GAP}{self._paint.ink(url, dim=True)}"
        for entry in shelf.entries:
            row = self._row(_cells(entry), _COLORS[entry.tools])
            yield f"{'*' if entry.default else ' '} {row}"
            for reason in entry.why if self._why else ():
                yield self._paint.ink(f"{_INDENT}{_INDENT}{reason}", dim=True)

    def note(self, shelf: Shelf) -> Iterator[str]:
        """Say why it has none."""
        if shelf.note:
            yield _INDENT + self._paint.ink(visible(shelf.note).replace("\n", " "), "" if shelf.answered else "red")
        if shelf.hint:
            yield _INDENT + self._paint.ink(shelf.hint, dim=True)

    def foot(self) -> Iterator[str]:
        """Say what the mark means, if it is there."""
        if any(entry.default for shelf in self._shelves for entry in shelf.entries):
            yield ""
            yield self._paint.ink(_DEFAULT, dim=True)

    def _row(self, cells: tuple[str, str, str], color: str = "") -> str:
        names, tools = self._widths
        known = self._paint.ink(cells[1], color) + " " * (tools - len(cells[1]))
        return f"{cut(cells[0], names):{names}}{_GAP}{known}{_GAP}{cells[2]}"


def _cells(entry: Entry) -> tuple[str, str, str]:
    name = visible(entry.name)
    if entry.model != entry.name:
        name = f"{name} {sign('→', '->')} {visible(entry.model)}"
    if not entry.listed:
        name += " (not listed)"
    measured = f", measured: {visible(entry.profile)}" if entry.profile else ""
    return name, str(entry.tools), in_words(entry.plan, entry.tools) + measured


def in_words(plan: Plan, tools: Support) -> str:
    """Say what is done with a request that has tools."""
    how = plan.strategy if plan.strategy is Strategy.DECISION else plan.dialect
    emulated = f"emulated ({how})"
    match plan.way:
        case Way.PLAIN:
            return "leaves tools out"
        case Way.OFF:
            return "leaves all as it is"
        case Way.FORCE:
            return emulated
        case Way.FALLBACK:
            return f"native, then {emulated}"
        case Way.NATIVE if tools is Support.UNKNOWN:
            return f"native, else {emulated}"
        case Way.NATIVE:
            return "native, leaks rescued" if tools is Support.LEAKS and plan.rescue else "native"


def as_object(shelves: Iterable[Shelf]) -> JsonObject:
    """Say it for programs."""
    return {"upstreams": [_shelf_object(shelf) for shelf in shelves]}


def _shelf_object(shelf: Shelf) -> JsonObject:
    upstream = shelf.upstream
    return {
        "name": upstream.name,
        "url": upstream.url,
        "wire": upstream.wire,
        "error": None if shelf.answered else shelf.note,
        "models": [_entry_object(entry) for entry in shelf.entries],
    }


def _entry_object(entry: Entry) -> JsonObject:
    return {
        "name": entry.name,
        "model": entry.model,
        "default": entry.default,
        "listed": entry.listed,
        "upstream_tools": str(entry.tools),
        "known_from": str(entry.source),
        "family": entry.family or None,
        "way": str(entry.plan.way),
        "dialect": entry.plan.dialect,
        "plan": entry.plan.line,
        "profile": entry.profile or None,
    }

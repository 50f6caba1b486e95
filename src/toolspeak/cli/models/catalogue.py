"""Lists the models of each configured upstream, as a table for people and as an object for programs.

  model               tools    what toolspeak does

ollama  http://127.0.0.1:11434
* qwen2.5-coder:0.5b  unknown  native, else emulated (hermes)
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import click

from toolspeak.cli.output import hint_for
from toolspeak.cli.terminal import Paint, shorten, sign, visible
from toolspeak.config.assemble import assemble, outbound_of
from toolspeak.config.shape import Config, Upstream
from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import Strategy
from toolspeak.facts.families import families_of
from toolspeak.facts.model import Source, Support
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Directory, Listed, Route
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream, list_models

_WITH_TOOLS: Final = Request("", (), (Tool("any"),))
_SOURCES: Final = {
    Source.NOBODY: "unknown; toolspeak sends them, and learns from a refusal",
    Source.TABLE: "the same for all models of this vendor",
    Source.MEASURED: "measured",
    Source.SAID: "set in your configuration",
}
_COLORS: Final = {Support.NATIVE: "green", Support.LEAKS: "yellow", Support.NONE: "yellow", Support.UNKNOWN: ""}
_HEADS: Final = ("model", "tools", "what toolspeak does")
_INDENT, _GAP = "  ", "  "
_LEAST: Final = 16
"""Columns for a name, even on a narrower terminal."""
_DEFAULT: Final = "* is the default: it answers requests for models that no upstream has"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model: its name for clients, its name at the upstream, the support for tools, and the plan for them."""

    name: str
    model: str
    tools: Support
    plan: Plan
    default: bool = False
    listed: bool = True
    profile: str = ""
    """The form that the doctor has saved for it; empty if none."""
    suspended: str = ""
    """That the gateway has suspended this profile (CAP-11), and for whom; empty if it is in use."""
    source: Source = Source.NOBODY
    """Where the value of `tools` comes from."""
    family: str = ""
    why: tuple[str, ...] = ()
    """The reasons for the plan, one per line."""


@dataclass(frozen=True, slots=True)
class UpstreamModels:
    """An upstream and its models. If it lists none, `note` says why and `hint` what to do."""

    upstream: Upstream
    entries: tuple[CatalogueEntry, ...]
    answered: bool = True
    note: str = ""
    hint: str = ""


async def catalogue(config: Config) -> tuple[UpstreamModels, ...]:
    """Ask all upstreams for their models."""
    transport = HttpTransport(outbound_of(config))
    try:
        directory = assemble(config, transport)
        listed = await directory.listing()
        default = await directory.find("")
        return tuple([await _models_of(upstream, directory, listed, default) for upstream in config.upstreams])
    finally:
        await transport.close()


async def _models_of(
    upstream: Upstream, directory: Directory, listed: Sequence[Listed], default: Route
) -> UpstreamModels:
    entries = [_entry(each.name, each.route, default) for each in listed if each.route.place == upstream.name]
    names = {each.name for each in listed if not each.route.alias and each.route.place == upstream.name}
    if default.place == upstream.name and default.model and not any(entry.default for entry in entries):
        entries.append(replace(_entry(default.model, default, default), listed=False))
    found = UpstreamModels(upstream, tuple(entries))
    return found if names else await _without_list(found, directory)


async def _without_list(found: UpstreamModels, directory: Directory) -> UpstreamModels:
    """Find out why an upstream lists no models. It is asked again, because the directory does not pass failures on."""
    name = found.upstream.name
    http = (await directory.exactly(f"{name}/any")).upstream
    try:
        names = await list_models(http) if isinstance(http, HttpUpstream) else []
    except TransportError as broken:
        failure = broken.failure
        return replace(found, answered=False, note=failure.message, hint=hint_for(failure.kind))
    if names:
        return replace(found, note="other upstreams have models of the same names", hint=f"ask for {name}/MODEL")
    return replace(found, note="lists no models")


def _entry(name: str, route: Route, default: Route) -> CatalogueEntry:
    known, families, kept = route.known, families_of(route.model), route.measured.profile
    suspended = route.profiles.suspension(route.model)
    kept = kept or (route.profiles.of(route.model).profile if suspended else None)
    return CatalogueEntry(
        name,
        route.model,
        known.tools,
        route.plan(_WITH_TOOLS),
        route == default,
        profile=kept.form if kept else "",
        suspended=suspended,
        source=known.source,
        family=families[-1].name if families else "",
        why=(f"tools: {_SOURCES[known.source]}", *(f"family {each.name}: {each.why}" for each in families[-1:])),
    )


# ---------------------------------------------------------------- for people


class CatalogueTable:
    """The catalogue as text; the columns have the same widths for all upstreams."""

    def __init__(self, found: Sequence[UpstreamModels], paint: Paint, *, why: bool = False) -> None:
        """Measure the columns. Names that leave no room for the other columns are shortened."""
        self._paint: Final = paint
        self._why: Final = why
        self._found: Final = found
        rows = [row for each in found for row in map(_cells, each.entries)]
        names, tools, deeds = (max(map(len, column)) for column in zip(_HEADS, *rows, strict=True))
        room = max(paint.width - tools - deeds - 3 * len(_GAP), _LEAST) if paint.width else names
        self._widths: Final = (min(names, room), tools)

    def echo(self) -> None:
        """Print the table on standard output, and the notes on standard error."""
        for line in self._head():
            click.echo(line)
        for number, each in enumerate(self._found):
            click.echo("\n" * bool(number) + "\n".join(self._models(each)))
            for line in self._note(each):
                click.echo(line, err=True)
        for line in self._foot():
            click.echo(line)

    def _head(self) -> Iterator[str]:
        if any(each.entries for each in self._found):
            yield self._paint.ink(_INDENT + self._row(_HEADS), dim=True)
            yield ""

    def _models(self, found: UpstreamModels) -> Iterator[str]:
        name, url = visible(found.upstream.name), visible(found.upstream.url)
        yield f"{self._paint.ink(name, bold=True)}{_GAP}{self._paint.ink(url, dim=True)}"
        for entry in found.entries:
            row = self._row(_cells(entry), _COLORS[entry.tools])
            yield f"{'*' if entry.default else ' '} {row}"
            for reason in entry.why if self._why else ():
                yield self._paint.ink(f"{_INDENT}{_INDENT}{reason}", dim=True)

    def _note(self, found: UpstreamModels) -> Iterator[str]:
        if found.note:
            yield _INDENT + self._paint.ink(visible(found.note).replace("\n", " "), "" if found.answered else "red")
        if found.hint:
            yield _INDENT + self._paint.ink(found.hint, dim=True)

    def _foot(self) -> Iterator[str]:
        if any(entry.default for each in self._found for entry in each.entries):
            yield ""
            yield self._paint.ink(_DEFAULT, dim=True)

    def _row(self, cells: tuple[str, str, str], color: str = "") -> str:
        names, tools = self._widths
        known = self._paint.ink(cells[1], color) + " " * (tools - len(cells[1]))
        return f"{shorten(cells[0], names):{names}}{_GAP}{known}{_GAP}{cells[2]}"


def _cells(entry: CatalogueEntry) -> tuple[str, str, str]:
    name = visible(entry.name)
    if entry.model != entry.name:
        name = f"{name} {sign('→', '->')} {visible(entry.model)}"
    if not entry.listed:
        name += " (not listed)"
    measured = f", measured: {visible(entry.profile)}" if entry.profile else ""
    measured += f" ({entry.suspended}: run toolspeak doctor)" if entry.suspended else ""
    return name, str(entry.tools), plan_text(entry.plan, entry.tools) + measured


def plan_text(plan: Plan, tools: Support) -> str:
    """Describe what happens to a request that has tools."""
    how = Strategy.DECISION if plan.settings.strategy is Strategy.DECISION else plan.dialect
    emulated = f"emulated ({how})"
    match plan.way:
        case Way.PLAIN:
            return "removes tools"
        case Way.OFF:
            return "passes through unchanged"
        case Way.FORCE:
            return emulated
        case Way.FALLBACK:
            return f"native, then {emulated}"
        case Way.NATIVE if tools is Support.UNKNOWN:
            return f"native, else {emulated}"
        case Way.NATIVE:
            return "native, leaks rescued" if tools is Support.LEAKS and plan.settings.rescue else "native"


# ---------------------------------------------------------------- for programs


def catalogue_object(found: Iterable[UpstreamModels]) -> JsonObject:
    """Return the catalogue as an object for programs."""
    return {"upstreams": [_upstream_object(each) for each in found]}


def _upstream_object(found: UpstreamModels) -> JsonObject:
    upstream = found.upstream
    return {
        "name": upstream.name,
        "url": upstream.url,
        "wire": upstream.wire,
        "error": None if found.answered else found.note,
        "models": [_entry_object(entry) for entry in found.entries],
    }


def _entry_object(entry: CatalogueEntry) -> JsonObject:
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
        "profile_suspended": entry.suspended or None,
    }

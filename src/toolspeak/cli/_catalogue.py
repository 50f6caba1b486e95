"""The models that can be asked for, upstream by upstream. The data that `models` shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.cli.failure_hints import hint_for
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config, Upstream
from toolspeak.engine.plan import Plan
from toolspeak.facts.families import families_of
from toolspeak.facts.model import Source, Support
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Directory, Listed, Route
from toolspeak.runtime.listing import list_models
from toolspeak.runtime.transport import Broken, HttpTransport
from toolspeak.runtime.upstream import HttpUpstream

_WITH_TOOLS: Final = Request("", (), (Tool("any"),))
_SOURCES: Final = {
    Source.NOBODY: "nobody knows; they are sent, and a refusal tells",
    Source.TABLE: "it holds for all models of this vendor",
    Source.MEASURED: "it was measured",
    Source.SAID: "you say so",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A model: the name to ask for, its name at the upstream, what is known of its tools, what is done with them."""

    name: str
    model: str
    tools: Support
    plan: Plan
    default: bool = False
    listed: bool = True
    profile: str = ""
    """The form that the doctor has kept for it; empty if none."""
    source: Source = Source.NOBODY
    """Who says what becomes of its tools."""
    family: str = ""
    why: tuple[str, ...] = ()
    """How it is known, a line each."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """An upstream and its models; without any, why."""

    upstream: Upstream
    entries: tuple[Entry, ...]
    answered: bool = True
    note: str = ""
    hint: str = ""


async def catalogue(config: Config) -> tuple[Shelf, ...]:
    """Ask all upstreams for their models."""
    transport = HttpTransport()
    try:
        directory = assemble(config, transport)
        listed = await directory.listing()
        default = await directory.find("")
        return tuple([await _shelf(upstream, directory, listed, default) for upstream in config.upstreams])
    finally:
        await transport.close()


async def default_route(config: Config) -> Route:
    """Return the model that is asked when nobody names one; its name is empty if no upstream tells."""
    transport = HttpTransport()
    try:
        return await assemble(config, transport).find("")
    finally:
        await transport.close()


async def _shelf(upstream: Upstream, directory: Directory, listed: Sequence[Listed], default: Route) -> Shelf:
    entries = [_entry(each.name, each.route, default) for each in listed if each.route.place == upstream.name]
    asked = {each.name for each in listed if not each.route.alias and each.route.place == upstream.name}
    if default.place == upstream.name and default.model and not any(entry.default for entry in entries):
        entries.append(replace(_entry(default.model, default, default), listed=False))
    if asked:
        return Shelf(upstream, tuple(entries))
    return await _without_list(Shelf(upstream, tuple(entries)), directory)


async def _without_list(shelf: Shelf, directory: Directory) -> Shelf:
    """Ask again, for the directory keeps a failure to itself."""
    http = (await directory.exactly(f"{shelf.upstream.name}/any")).upstream
    try:
        names = await list_models(http) if isinstance(http, HttpUpstream) else []
    except Broken as broken:
        failure = broken.failure
        return replace(shelf, answered=False, note=failure.message, hint=hint_for(failure.kind))
    if names:
        return replace(shelf, note="other upstreams have the same names", hint=f"ask for {shelf.upstream.name}/NAME")
    return replace(shelf, note="lists no models")


def _entry(name: str, route: Route, default: Route) -> Entry:
    known, families, kept = route.known, families_of(route.model), route.measured.profile
    return Entry(
        name,
        route.model,
        known.tools,
        route.plan(_WITH_TOOLS),
        route == default,
        profile=kept.form if kept else "",
        source=known.source,
        family=families[-1].name if families else "",
        why=(f"tools: {_SOURCES[known.source]}", *(f"family {each.name}: {each.why}" for each in families[-1:])),
    )

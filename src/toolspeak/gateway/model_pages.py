"""The pages of models: how tools are handled and why, with buttons that probe a model and start the doctor (OBS-17).

A session sees the models that its key may use, and no others. An upstream that is slow or down does not hold up the
page: it shows what was known before.

Only a gateway without keys has the buttons of the doctor. A profile changes what all tenants get, and an examination
takes the server's time for minutes, so with keys the operator starts the doctor in a terminal.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from toolspeak.config.shape import Upstream
from toolspeak.dashboard.model_rows import LONGEST_NAME, ModelRow, PageContext, UpstreamRows, model_row
from toolspeak.doctor.diagnosis import QUICK_MINUTES, results_folder
from toolspeak.errors import BadField
from toolspeak.gateway.access import is_permitted
from toolspeak.gateway.checkups import CheckupProgress
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.page_request import Page, PageRequest
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.directory import Listed, Route
from toolspeak.runtime.replicas import ReplicaPool

_PATIENCE: Final = 3.0
"""Seconds that a page waits for the lists of upstreams."""
MOST_MODELS: Final = 200
"""Models on one page; a search finds the others."""


async def show_models(request: PageRequest) -> Page:
    """Show all models, or the one whose name follows in the path; `?part=row` is only its row."""
    default = await look_at_models(request)
    if len(request.path) > 1:
        return _show_model(request, "/".join(request.path[1:]), default)
    search = request.query("search")[:LONGEST_NAME]
    found = [one for one in permitted_models(request, default) if search.lower() in one.name.lower()]
    upstreams = _upstreams(request, found[:MOST_MODELS], default, has_search=bool(search))
    more = max(0, len(found) - MOST_MODELS)
    template = "models_list.html" if request.is_fragment else "models.html"
    # Hundreds of rows take long enough to hold up streams, so they are rendered in a thread.
    return await request.gateway.viewers.compute(
        lambda: request.page(template, title="Models", upstreams=upstreams, search=search, more=more)
    )


async def probe_model(request: PageRequest) -> Page:
    """Probe a model now, in the background; the row asks for itself until the probe has ended."""
    default = await look_at_models(request)
    name = "/".join(request.path[1:])
    listed = _find(request, name, default)
    problem = request.gateway.prober.ask(listed.route)
    if request.is_fragment:
        return _show_model(request, name, default, problem)
    return Page(b"", 303, b"text/plain", ((b"location", f"/ui/models/{quote(name)}".encode()),))


async def look_at_models(request: PageRequest) -> Route | None:
    """Read the lists of models that are old, and return the default route; None if it is not known in time."""
    directory = request.gateway.directory
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await directory.look()
            return await directory.find("")
    return None


def permitted_models(request: PageRequest, default: Route | None) -> list[Listed]:
    """Return the models that the session's key may use, with the default if no upstream lists it."""
    found = request.gateway.directory.models()
    if default is not None and default.model and all(one.route.identity != default.identity for one in found):
        found.append(Listed(default.identity, default))
    return [one for one in found if is_permitted(request.key, one.route)]


def _upstreams(
    request: PageRequest, found: list[Listed], default: Route | None, *, has_search: bool
) -> list[UpstreamRows]:
    """Group the models by upstream. A key for some models does not show upstreams that it may not use."""
    has_keys, urls = request.gateway.keyring.needs_key, {one.name: one.url for one in request.gateway.config.upstreams}
    groups: list[UpstreamRows] = []
    pools = request.gateway.directory.pools()
    for state in request.gateway.directory.states():
        rows = tuple(_row(request, one, default) for one in found if one.route.place == state.name)
        if not rows and (has_search or request.key.models):
            continue
        # What an upstream is called inside, and how it fails, concerns the operator and not its tenants.
        problem = "" if state.failure is None else "its list of models cannot be read"
        problem = state.failure.message if state.failure is not None and not has_keys else problem
        url = "" if has_keys else shown_url(urls.get(state.name, ""))
        groups.append(
            UpstreamRows(state.name, url, state.is_known, state.answers, problem, rows, _servers(pools[state.name]))
        )
    return groups


def _servers(pool: ReplicaPool) -> str:
    serving = sum(not each.is_out for each in pool.replicas)
    return f"{serving} of {len(pool.replicas)} servers in service" if len(pool.replicas) > 1 else ""


def shown_url(url: str) -> str:
    """Return a URL without anything that may be a secret: user, password and query."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}".partition("?")[0]


def _show_model(request: PageRequest, name: str, default: Route | None, problem: str = "") -> Page:
    listed = _find(request, name, default)
    row = _row(request, listed, default)
    template = "model_probe.html" if request.query("part") == "page" else "model_row.html"
    if not request.is_fragment:
        template = "model.html"
    doctor = _doctor_view(request, row, listed.route)
    return request.page(template, title=row.name, row=row, problem=problem, doctor=doctor)


def _row(request: PageRequest, listed: Listed, default: Route | None) -> ModelRow:
    gateway, route = request.gateway, listed.route
    is_probing, is_listed = gateway.prober.is_probing(route), bool(route.alias) or route.is_real
    context = PageContext(gateway.clock, default, hides_failures=gateway.keyring.needs_key)
    return model_row(listed, context, is_probing=is_probing, is_listed=is_listed)


def _find(request: PageRequest, name: str, default: Route | None) -> Listed:
    found = next((one for one in permitted_models(request, default) if one.name == name), None)
    if found is None:
        message = f"there is no model {name[:LONGEST_NAME]!r} that this key may use"
        raise Refused(Failure(FailureKind.NOT_FOUND, message, 404))
    return found


# ---------------------------------------------------------------- the doctor

_QUICK, _FULL, _STOP = "quick", "full", "stop"
"""What a person can ask for: the values of the buttons."""


@dataclass(frozen=True, slots=True)
class _DoctorView:
    """What the template of the doctor shows."""

    checkup: CheckupProgress | None
    may_start: bool
    command: str
    """Empty if the name of the model cannot be written in one."""
    problem: str
    """Why it cannot start."""
    minutes: str = f"{QUICK_MINUTES:g}"


async def show_doctor(request: PageRequest) -> Page:
    """Show the doctor's part of the page; while it runs, the part asks for itself again."""
    default = await look_at_models(request)
    return _doctor_part(request, _find(request, "/".join(request.path[1:]), default), default)


async def change_doctor(request: PageRequest) -> Page:
    """Start or stop the doctor, and show its part of the page. Raises `Refused` where there are keys."""
    gateway = request.gateway
    if gateway.keyring.needs_key:
        message = "this gateway has keys, so the doctor is started in a terminal: toolspeak doctor MODEL"
        raise Refused(Failure(FailureKind.PERMISSION, message, 403))
    action, problem = (await request.form()).get("do", ""), ""
    if action not in (_QUICK, _FULL, _STOP):
        raise BadField("do", f"{action[:20]!r} is not one of {_QUICK}, {_FULL}, {_STOP}")
    default = await look_at_models(request)
    listed = _find(request, "/".join(request.path[1:]), default)
    if action == _STOP:
        await gateway.checkups.stop(listed.route)
    else:
        folder = results_folder(gateway.config.profiles)
        problem = gateway.checkups.start(listed.route, folder, quick=action == _QUICK)
    if request.is_fragment:
        return _doctor_part(request, listed, default, problem)
    return Page(b"", 303, b"text/plain", ((b"location", f"/ui/models/{quote(listed.name)}".encode()),))


def _doctor_part(request: PageRequest, listed: Listed, default: Route | None, problem: str = "") -> Page:
    row = _row(request, listed, default)
    return request.page("model_doctor.html", row=row, doctor=_doctor_view(request, row, listed.route, problem))


def _doctor_view(request: PageRequest, row: ModelRow, route: Route, problem: str = "") -> _DoctorView:
    gateway = request.gateway
    may_start, command = not gateway.keyring.needs_key, _doctor_command(request, row)
    return _DoctorView(gateway.checkups.progress(route), may_start, command, problem)


def _doctor_command(request: PageRequest, row: ModelRow) -> str:
    """Return the command that measures a model; empty if its name cannot be written in one.

    Where a plain URL is enough to reach the upstream, the command has it, so that it works in any folder. Else the
    command needs the gateway's own configuration, as its page says.
    """
    if not row.doctor_name:
        return ""
    gateway = request.gateway
    upstream = next((one for one in gateway.config.upstreams if one.name == row.upstream), None)
    if upstream is None or gateway.keyring.needs_key or row.alias or not _is_plain(upstream):
        return f"toolspeak doctor {row.doctor_name}"
    wire = "" if upstream.wire == Upstream("", "").wire else f" --wire {upstream.wire}"
    return f"toolspeak doctor {row.doctor_name} --upstream {upstream.url}{wire}"


def _is_plain(upstream: Upstream) -> bool:
    is_url = upstream.url.isascii() and not set(upstream.url) & set("@?'\"`$&;|<>()\\ \n")
    return is_url and not upstream.key and not upstream.headers

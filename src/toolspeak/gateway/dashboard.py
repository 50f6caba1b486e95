"""Answers requests below `/ui`: finds the page, checks the session, and adds the headers of every page (OBS-16).

To add a page, write a handler (`page_request.py`) and a template in `dashboard/templates`, and add a row to `PAGES`.

What models and clients write is shown on these pages, so three walls keep it from acting: templates escape every value,
the Content-Security-Policy allows no inline script and no other host, and each POST must come from a page of this very
origin. Cookies are `SameSite=Strict`, so a link on another page does not even show a page.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from toolspeak.dashboard.pages import static_file
from toolspeak.errors import BadRequest
from toolspeak.gateway import model_pages, playground_pages, request_pages, response_pages, run_pages
from toolspeak.gateway.access import ANONYMOUS
from toolspeak.gateway.access_log import Fault, fault_of
from toolspeak.gateway.exchange import Exchange, Refused, ResponseContext, answer, header
from toolspeak.gateway.page_request import (
    PAGE_HEADERS,
    UNCACHED,
    DashboardGateway,
    Page,
    PageHandler,
    PageRequest,
)
from toolspeak.gateway.routes import Target
from toolspeak.ir.failure import Failure, FailureKind


@dataclass(frozen=True, slots=True)
class _Route:
    """Where a page is, and what answers it."""

    method: str
    name: str
    """The first part of the path below /ui."""
    handler: PageHandler
    title: str = ""
    """Its name in the navigation; empty if it is not in there."""
    is_stream: bool = False
    """Whether it stays open: then it does not count among the requests that are being answered."""


PAGES: Final = (
    _Route("GET", "", request_pages.show_list, "Requests"),
    _Route("GET", "events", request_pages.stream_list, is_stream=True),
    _Route("GET", "requests", response_pages.show_response),
    _Route("POST", "requests", response_pages.replay_response),
    _Route("GET", "models", model_pages.show_models, "Models"),
    _Route("POST", "models", model_pages.probe_model),
    _Route("GET", "doctor", model_pages.show_doctor),
    _Route("POST", "doctor", model_pages.change_doctor),
    _Route("GET", "runs", run_pages.show_runs, "Runs"),
    _Route("POST", "runs", run_pages.change_run),
    _Route("GET", "run-events", run_pages.stream_run, is_stream=True),
    _Route("GET", "playground", playground_pages.show_playground, "Playground"),
    _Route("POST", "playground", playground_pages.run_column, is_stream=True),
)
"""All pages that need a session, in the order of the navigation."""

_CACHED: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_LOGIN: Final = "/ui/login"
_PATH_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-")


async def answer_page(gateway: DashboardGateway, exchange: Exchange, target: Target, response: ResponseContext) -> None:
    """Answer one request below /ui; a failure is a page too."""
    path = tuple(unquote(part) for part in target.name.split("/"))
    key = gateway.sessions.find(exchange, gateway.keyring)
    request = PageRequest(gateway, exchange, response, key or ANONYMOUS, key is not None, path, _navigation(path[0]))
    if key is not None:
        exchange.tenant = response.entry.tenant = key.tenant
    try:
        if exchange.method == "POST":
            _check_origin(exchange)
        page = await _open_page(request)
    except Refused as refused:
        response.entry.fail(fault_of(refused.failure), refused.failure)
        page = _error(request, refused.failure)
    except BadRequest as error:
        failure = Failure(FailureKind.INVALID_REQUEST, str(error), error.status)
        response.entry.fail(Fault.CLIENT, failure)
        page = _error(request, failure)
    if page is not None:
        await send_page(request, page)


async def send_page(request: PageRequest, page: Page) -> None:
    """Send a page with the headers of every page."""
    is_cached = any(name == b"cache-control" for name, _ in page.headers)
    headers = (*PAGE_HEADERS, *page.headers, *(() if is_cached else (UNCACHED,)))
    trace = (b"x-toolspeak-trace", request.response.trace.encode())
    # The headers for pages of other origins (`ResponseContext.allow`) are left out: none may read these.
    await answer(request.exchange, page.status, page.media_type, page.body, (trace, *headers))


async def _open_page(request: PageRequest) -> Page | None:
    method, name = _method(request.exchange), request.path[0]
    if name == "static":
        return _static(request.path[1:])
    if name == "login":
        return await _log_in(request) if method == "POST" else _show_login(request)
    if not request.has_session:
        return _to_login(request)
    if (method, name) == ("POST", "logout"):
        return _redirect("/ui/login", (b"set-cookie", request.gateway.sessions.end(request.exchange)))
    route = next((one for one in PAGES if (one.method, one.name) == (method, name)), None)
    if route is None:
        message = f"there is no page at {request.exchange.path[:200]}"
        raise Refused(Failure(FailureKind.NOT_FOUND, message, 404))
    if route.is_stream:  # it has no body for HEAD to leave out
        return Page(b"") if request.exchange.method == "HEAD" else await route.handler(request)
    async with request.gateway.admission.enter(request.key, is_free=True):
        return await route.handler(request)


def _method(exchange: Exchange) -> str:
    return "GET" if exchange.method == "HEAD" else exchange.method


def _navigation(name: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the navigation. A page below a page of the navigation belongs to it: one response to the requests."""
    here = {"requests": "", "doctor": "models"}.get(name, name)
    return tuple((one.title, f"/ui/{one.name}".rstrip("/"), one.name == here) for one in PAGES if one.title)


def _static(path: tuple[str, ...]) -> Page:
    found = static_file("/".join(path))
    if found is None:
        raise Refused(Failure(FailureKind.NOT_FOUND, "there is no such file", 404))
    media_type, content = found
    return Page(content, 200, media_type, (_CACHED,))


def _error(request: PageRequest, failure: Failure) -> Page:
    template = "error_fragment.html" if request.is_fragment else "error.html"
    return request.page(template, status=failure.status or 500, title="Error", failure=failure)


# ---------------------------------------------------------------- who may see it


def _check_origin(exchange: Exchange) -> None:
    """Raise `Refused` (403) unless the request comes from a page of this origin.

    `server.origins` is not enough here: those pages may use the API with a key of their own, not a person's session.
    """
    site, origin, host = (header(exchange, name) for name in (b"sec-fetch-site", b"origin", b"host"))
    is_own = origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())
    if not (is_own and site in ("", "same-origin")):
        message = (
            "this form was not sent by a page of the dashboard; open /ui and send it from there. "
            "A proxy in front must pass the Host header on"
        )
        raise Refused(Failure(FailureKind.PERMISSION, message, 403))


def _show_login(request: PageRequest) -> Page:
    if request.has_session:
        return _redirect("/ui")
    return request.page("login.html", title="Log in", problem="", then=_own_path(request.query("then")))


async def _log_in(request: PageRequest) -> Page:
    gateway, form = request.gateway, await request.form()
    key = gateway.keyring.match(form.get("key", "").strip(), request.exchange.client)
    then = _own_path(form.get("then", ""))
    if not gateway.keyring.needs_key:
        return _redirect("/ui")
    if key is None:
        failure = Failure(FailureKind.AUTH, "a valid key is needed", 401)
        request.response.entry.fail(Fault.CLIENT, failure)
        problem = "This key is not known here. Keys are in [[keys]] of the configuration, or made by `toolspeak keys`."
        return request.page("login.html", status=401, title="Log in", problem=problem, then=then)
    is_secure = header(request.exchange, b"origin").startswith("https://")
    return _redirect(then or "/ui", (b"set-cookie", gateway.sessions.begin(key, is_secure=is_secure)))


def _to_login(request: PageRequest) -> Page:
    """Return the way to the login page. htmx and streams cannot follow it with a page, so they get 401."""
    is_plain = request.exchange.method in ("GET", "HEAD") and not request.is_fragment and request.path[0] != "events"
    then = _own_path(request.exchange.path)
    address = f"{_LOGIN}?then={then}" if then not in ("", "/ui") else _LOGIN
    if is_plain:
        return _redirect(address)
    return Page(b"the session has ended", 401, b"text/plain", ((b"hx-redirect", _LOGIN.encode()),))


def _own_path(path: str) -> str:
    """Return a path below /ui, or nothing: after the login a browser must not be sent to another place."""
    is_own = path == "/ui" or (path.startswith("/ui/") and "//" not in path)
    return path if is_own and _PATH_CHARACTERS.issuperset(path) else ""


def _redirect(path: str, *headers: tuple[bytes, bytes]) -> Page:
    return Page(b"", 303, b"text/plain", ((b"location", path.encode()), *headers))

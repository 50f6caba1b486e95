"""One request for a page of the dashboard, and its response.

A handler of a page is a function `async def models(request: PageRequest) -> Page | None`. It returns a page, or None if
it has written its response itself, as a live stream does. It raises `Refused` or `BadRequest` for a page with an error.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from urllib.parse import parse_qs

from toolspeak.config.shape import Config, Key
from toolspeak.dashboard.pages import render
from toolspeak.gateway.access import Keyring
from toolspeak.gateway.access_log import AccessEntry
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.checkups import Checkups
from toolspeak.gateway.exchange import Exchange, Headers, Refused, ResponseContext, header
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.runs_api import RunsApi
from toolspeak.gateway.sessions import Sessions
from toolspeak.gateway.trace_log import TraceLog
from toolspeak.gateway.turns import OwnTurn
from toolspeak.gateway.viewers import Viewers
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.prober import Prober

HTML: Final = b"text/html; charset=utf-8"
PAGE_HEADERS: Final = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    # Not `no-referrer`: browsers then send forms with `Origin: null`, and no form could be told from a stranger's.
    (b"referrer-policy", b"same-origin"),
)
"""Headers of every page."""
UNCACHED: Final = (b"cache-control", b"no-store")
_LONGEST_FORM: Final = 65_536
_LONGEST_QUERY: Final = 4000
_MOST_FIELDS: Final = 50


class DashboardGateway(Protocol):
    """The parts of the gateway that pages use; `app.Gateway` has them."""

    @property
    def config(self) -> Config: ...  # noqa: D102 # each part has its docstring
    @property
    def directory(self) -> Directory: ...  # noqa: D102
    @property
    def prober(self) -> Prober: ...  # noqa: D102
    @property
    def reader(self) -> RequestReader: ...  # noqa: D102
    @property
    def keyring(self) -> Keyring: ...  # noqa: D102
    @property
    def admission(self) -> Admission: ...  # noqa: D102
    @property
    def traces(self) -> TraceLog: ...  # noqa: D102
    @property
    def sessions(self) -> Sessions: ...  # noqa: D102
    @property
    def viewers(self) -> Viewers: ...  # noqa: D102
    @property
    def checkups(self) -> Checkups: ...  # noqa: D102
    @property
    def clock(self) -> Clock: ...  # noqa: D102
    @property
    def runs(self) -> RunsApi: ...  # noqa: D102
    async def handle(self, exchange: Exchange, own: OwnTurn | None = None) -> AccessEntry: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Page:
    """A whole response."""

    body: bytes
    status: int = 200
    media_type: bytes = HTML
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request below /ui, by a person who may see it."""

    gateway: DashboardGateway
    exchange: Exchange
    response: ResponseContext
    key: Key
    has_session: bool
    """Whether the key is known: it is not on the login page."""
    path: tuple[str, ...]
    """The parts of the path below /ui, unescaped."""
    navigation: tuple[tuple[str, str, bool], ...]
    """Title and address of each page of the navigation, and whether it is this one."""

    @property
    def tenant(self) -> str | None:
        """The tenant whose traces and runs may be shown; None for all of them, where there are no keys."""
        return self.key.tenant if self.gateway.keyring.needs_key else None

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks for a part of a page."""
        return header(self.exchange, b"hx-request") == "true"

    @property
    def address(self) -> str:
        """The address by which the browser reaches the gateway, such as `http://127.0.0.1:4141`."""
        is_tls = self.gateway.config.server.tls.is_on or header(self.exchange, b"x-forwarded-proto") == "https"
        return f"{'https' if is_tls else 'http'}://{header(self.exchange, b'host')}"

    def query(self, name: str) -> str:
        """Return a value of the query; empty if it is absent."""
        return parse_form(self.exchange.query[:_LONGEST_QUERY]).get(name, "")

    async def form(self) -> dict[str, str]:
        """Return the fields of the form that was posted; raises `Refused` if it is too large."""
        length = header(self.exchange, b"content-length")
        if not (length.isascii() and length.isdecimal() and int(length[:9]) <= _LONGEST_FORM):
            message = f"a form may have {_LONGEST_FORM} bytes, and must say its length"
            raise Refused(Failure(FailureKind.TOO_LARGE, message, 413))
        return parse_form((await self.exchange.body()).decode("utf-8", "replace"))

    def page(self, template: str, *, status: int = 200, **values: object) -> Page:
        """Return a page, or a part of one. Its template sees this request, and has the frame if it extends `base.html`.

        `title` must be among the values of a whole page.
        """
        return Page(render(template, request=self, **values), status)


PageHandler: TypeAlias = Callable[[PageRequest], Awaitable[Page | None]]


def parse_form(text: str) -> dict[str, str]:
    """Return the last value of each field of a form or a query; empty if there are too many fields."""
    try:
        return {name: values[-1] for name, values in parse_qs(text, max_num_fields=_MOST_FIELDS).items()}
    except ValueError:
        return {}

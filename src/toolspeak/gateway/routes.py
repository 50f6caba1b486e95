"""Maps a method and a path to an operation of a wire.

Every wire defines its endpoints, wires of other packages too; only the gateway's own are here. Clients put versions in
front of a path, some twice (a base URL with `/v1` in a client that adds its own): `/v1/v1/messages` is `/messages`. An
unknown path gets 404. Keys are checked without looking at the path, so no spelling of a path gets around them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolspeak import wires
from toolspeak.gateway.exchange import Exchange
from toolspeak.ir.json import JsonObject
from toolspeak.wires import MODEL_FIELD, Endpoint, HttpApi, Operation

RUNS, LOAD, READY, TRACES, METRICS, UI = "runs", "load", "ready", "traces", "metrics", "ui"
UPSTREAM_METRICS: Final = "upstreams"
"""Operations of the gateway itself, besides those of wires."""
_VERSIONS = re.compile(r"(?:/v1(?:beta|alpha)?(?=/))*")


@dataclass(frozen=True, slots=True)
class Target:
    """An operation of a wire.

    `name` is a model's name in the path, or the rest of one below /runs, /traces, /upstreams or /ui.
    """

    wire: str
    what: str
    """An `Operation`, or one of the gateway itself; empty if the path is unknown."""
    name: str = ""
    body: JsonObject | None = None
    """The body of the response, if it is always the same (`Operation.FIXED`)."""


_OWN: Final = {
    ("GET", "/health"): Target(wires.DEFAULT, Operation.HEALTH),
    ("GET", "/live"): Target(wires.DEFAULT, Operation.HEALTH),
    ("GET", "/health/load"): Target(wires.DEFAULT, LOAD),
    ("GET", "/ready"): Target(wires.DEFAULT, READY),
    ("GET", "/metrics"): Target(wires.DEFAULT, METRICS),
}
OPEN: Final = frozenset((Operation.HEALTH, Operation.HOME, READY))
"""Operations that need no key: load balancers and clients check with them whether the server is up."""
_UI_METHODS: Final = ("GET", "POST")
FREE: Final = frozenset((Operation.MODELS, Operation.MODEL, Operation.FIXED, LOAD, TRACES, METRICS, UPSTREAM_METRICS))
"""Operations that do not count against the rate of a key where they only read: no model works on them."""
FIGURES: Final = frozenset((LOAD, METRICS, UPSTREAM_METRICS))
"""Operations that are answered during an overload too: an operator reads then what is wrong."""


@dataclass(frozen=True, slots=True)
class _Template:
    """A path that contains a model's name, which may itself contain slashes: `/models/{model}:generateContent`."""

    target: Target
    method: str
    head: str
    tail: str

    def match(self, method: str, path: str) -> Target | None:
        if method != self.method or not path.startswith(self.head):
            return None
        rest = path[len(self.head) :]
        # A client may escape the colon before Gemini's method name: `m%3AgenerateContent`.
        tail = self.tail if ":" in rest else self.tail.replace(":", "%3A")
        if not rest.endswith(tail):
            return None
        return Target(self.target.wire, self.target.what, rest[: len(rest) - len(tail)])


class Routes:
    """The endpoints of all wires."""

    def __init__(self, apis: Mapping[str, HttpApi]) -> None:
        """Take the endpoints of each wire. If several wires share a path, the request decides (see `_choose`)."""
        self._apis: Final = apis
        self._exact: Final[dict[tuple[str, str], list[Target]]] = {key: [target] for key, target in _OWN.items()}
        self._templates: Final[list[_Template]] = []
        for wire, api in apis.items():
            for endpoint in api.endpoints:
                self._add(wire, endpoint)

    def find(self, exchange: Exchange) -> Target:
        """Return the target of a request; its `what` is empty if the path is unknown."""
        path = without_versions(exchange.path)
        # HEAD is answered like GET, without the body: Claude Code sends `HEAD /`.
        method = "GET" if exchange.method == "HEAD" else exchange.method
        exact = self._exact.get((method, path)) or self._exact.get((method, path.rstrip("/")))
        if exact:
            return self._choose(exact, exchange)
        if target := _under_own(method, path):
            return target
        matching = [target for template in self._templates if (target := template.match(method, path))]
        return self._choose(matching, exchange) if matching else Target(self._wire_of(exchange, path), "")

    def request_id_header(self, target: Target) -> bytes:
        """Return the response header in which clients of this wire expect the request's id."""
        return self._apis[target.wire].request_id_header

    def _add(self, wire: str, endpoint: Endpoint) -> None:
        path = without_versions(endpoint.path)
        target = Target(wire, endpoint.operation, body=endpoint.body)
        head, field, tail = path.partition(MODEL_FIELD)
        if field:
            self._templates.append(_Template(target, endpoint.method, head, tail))
        else:
            self._exact.setdefault((endpoint.method, path), []).append(target)

    def _choose(self, targets: list[Target], exchange: Exchange) -> Target:
        """Return the target of the wire that recognizes its client, else that of the default wire, else the first.

        OpenAI and Anthropic share `GET /v1/models`: only the headers show which of the two formats a client expects.
        """
        if len(targets) == 1:
            return targets[0]
        recognized = (target for target in targets if self._apis[target.wire].recognizes(exchange))
        default = (target for target in targets if target.wire == wires.DEFAULT)
        return next(recognized, None) or next(default, None) or targets[0]

    def _wire_of(self, exchange: Exchange, path: str) -> str:
        """Return the wire that writes the 404 for an unknown path: by the path's prefix, else by the headers."""
        below = (wire for wire, api in self._apis.items() if api.prefix and path.startswith(api.prefix))
        recognized = (wire for wire, api in self._apis.items() if api.recognizes(exchange))
        return next(below, None) or next(recognized, None) or wires.DEFAULT


def without_versions(path: str) -> str:
    """Return a path without the versions in front of it."""
    return _VERSIONS.sub("", path, count=1)


def _under_own(method: str, path: str) -> Target | None:
    """Return the target of a path below /runs or /ui, or of one that is read below /traces or /upstreams."""
    room, _, rest = path.removeprefix("/").partition("/")
    is_read = room in (TRACES, UPSTREAM_METRICS) and method == "GET"
    is_own = room == RUNS or is_read or (room == UI and method in _UI_METHODS)
    return Target(wires.DEFAULT, room, rest.rstrip("/")) if is_own else None

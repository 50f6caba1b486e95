"""Forwards requests that are not chat to the upstream of their model: embeddings, completions, images, audio (PASS-1).

    POST /v1/embeddings {"model": "nomic", …}   ->   POST <the upstream's base URL>/embeddings, the same bytes
    POST /api/generate  {"model": "up:small"}   ->   POST <the upstream's root>/api/generate, with "model": "small"

Nothing here decodes what the endpoint means, so every endpoint of the same upstream works alike. Keys, permissions,
rates, sizes and overload are those of turns. Three things must not be left to the upstream:

- Which model it is. Permissions are checked against the route of `model`, so the upstream must read the same name. Two
  parsers can disagree on a body that names two: JSON with the key twice, Ollama's (Go), which ignores the case of keys,
  a form with two fields. Such bodies are refused.
- Where the request goes, and with which key. Of the client's headers only the types are forwarded (and `traceparent`,
  to an upstream that asks for it), and no query: both are places for keys. Fields that choose an upstream are refused,
  as turns drop them (SAFE-6).
- What an error says. It is decoded, cleaned of secrets, and written in the client's protocol, as for turns.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from toolspeak.config.shape import Key
from toolspeak.errors import BadField
from toolspeak.gateway.access import permit
from toolspeak.gateway.admission import Ticket
from toolspeak.gateway.exchange import UNKNOWN_URL, Exchange, Headers, Refused, ResponseContext, header
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import without_versions
from toolspeak.gateway.trace_log import parent_of
from toolspeak.ir.event import Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.directory import Directory, Route
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.transport import Response, TransportError
from toolspeak.runtime.turn_progress import BYTES_PER_TOKEN
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.text.display import visible
from toolspeak.wires.shared.routing_fields import ROUTING_FIELDS

_MODEL: Final = "model"
_FORM: Final = "multipart/form-data"
_NEVER: Final = 86_400.0
_SHOWN: Final = 80
_KEPT: Final = ("content-type", "content-disposition", "retry-after")
"""Headers of the upstream's response that the client gets."""
_NO_ENDPOINT: Final = (404, 405)
_BOUNDARY: Final = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_NAME: Final = re.compile(rb'[;\s]name="([^"\\\r\n]*)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedBody:
    """A body, and the name of its model, which is written at `start` to `end`, as JSON or plain."""

    model: str
    body: bytes
    start: int
    end: int
    is_json: bool

    def renamed(self, model: str) -> bytes:
        """Return the body for an upstream that has the model under another name; unchanged if it is the same."""
        if model == self.model:
            return self.body
        written = msgspec.json.encode(model) if self.is_json else model.encode()
        return b"".join((self.body[: self.start], written, self.body[self.end :]))


class Passthrough:
    """Forwards one request, and the response as it arrives."""

    def __init__(self, directory: Directory, prober: Prober, reader: RequestReader) -> None:
        """Take the parts of the gateway that forwarding needs."""
        self._directory: Final = directory
        self._prober: Final = prober
        self._reader: Final = reader

    async def take(self, exchange: Exchange, response: ResponseContext, key: Key, ticket: Ticket) -> None:
        """Find the model, forward the request, and answer; raises `Refused`, `BadField`, `Gone`."""
        named = await self._named(exchange)
        # A name means exactly that model: a vector of another model is no substitute, it is wrong in silence.
        route = await self._directory.exactly(named.model)
        permit(key, route)
        entry = response.entry
        entry.model = named.model
        entry.goes_to(route)
        upstream = route.upstream
        if not isinstance(upstream, HttpUpstream):
            raise _missing(exchange, route, "it is not an HTTP server")
        await ticket.use(route)
        if named.is_json:  # the tokens are not read from the response; a form has a sound or an image, which has none
            ticket.spend(Usage(input_tokens=len(named.body) // BYTES_PER_TOKEN))
        forwarding = self._forward(exchange, response, route, upstream, named.renamed(route.model))
        with self._prober.serving(route):
            await exchange.attended(forwarding, _never)

    async def _named(self, exchange: Exchange) -> NamedBody:
        body = await exchange.body()
        media_type = header(exchange, b"content-type")
        if media_type.partition(";")[0].strip().lower() == _FORM:
            return await self._reader.offload.for_size(len(body))(lambda: read_form(body, media_type))
        return await self._reader.read_json(body, read_json)

    async def _forward(
        self, exchange: Exchange, response: ResponseContext, route: Route, upstream: HttpUpstream, body: bytes
    ) -> None:
        path = without_versions(exchange.path).rstrip("/")
        types = [(name, value) for name in ("content-type", "accept") if (value := header(exchange, name.encode()))]
        try:
            answer = await upstream.forward(path, types, body, parent_of(exchange))
        except TransportError as error:
            raise self._explained(exchange, route, error.failure) from None
        try:
            await exchange.start(answer.status, (*_kept(answer), *response.headers))
            response.started = True  # from here on a failure can only cut the connection: the body is not ours to end
            # Each piece is written before the next one is read: a client that does not read slows the upstream down.
            while piece := await _next(answer):
                await exchange.write(piece)
            await exchange.write(b"", last=True)
        finally:
            answer.close()

    def _explained(self, exchange: Exchange, route: Route, failure: Failure) -> Refused:
        """Return the refusal. A 404 that does not speak of a model is about the path, and says so."""
        about_model = _MODEL in failure.message.lower() or (route.model and route.model in failure.message)
        if failure.status in _NO_ENDPOINT and not about_model:
            return _missing(exchange, route, f"it answers {failure.status}")
        return Refused(failure)


def _missing(exchange: Exchange, route: Route, why: str) -> Refused:
    path = visible(exchange.path[:_SHOWN])
    message = f"the upstream {route.place!r} has no endpoint {path} ({why}): use a model of an upstream that has it"
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404, code=UNKNOWN_URL))


def _kept(answer: Response) -> Headers:
    found = ((name, answer.headers.get(name, "")) for name in _KEPT)
    return tuple((name.encode(), value.encode("latin-1", "replace")) for name, value in found if value)


async def _next(answer: Response) -> bytes:
    try:
        return await answer.read()
    except TransportError as error:
        raise Refused(error.failure) from None


async def _never() -> float:
    """Send no keep-alive: only the upstream knows how its response may be extended."""
    return _NEVER


# ---------------------------------------------------------------- bodies

_NEEDED: Final = "it is missing: it says to which upstream the request goes"


def read_json(body: bytes) -> NamedBody:
    """Find the model in a JSON object; raises `BadField`."""
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        model = msgspec.json.decode(members.get(_MODEL) or b'""', type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadField("", f"the body is not a JSON object with a text as `model`: {error}") from None
    _check_names(members)
    if not model:
        raise BadField(_MODEL, _NEEDED)
    # The decoder keeps the last of two equal keys, other parsers the first.
    spans = [(start, end) for name, start, end in _texts(body) if name == _MODEL]
    if len(spans) != 1:
        raise BadField(_MODEL, f"the object has it {len(spans)} times")
    return NamedBody(model, body, *spans[0], is_json=True)


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if name in ROUTING_FIELDS:
            raise BadField(name, "a request cannot choose its upstream or its key; leave it out")
        if name.lower() == _MODEL and name != _MODEL:
            raise BadField(name[:_SHOWN], "write it as `model`: some servers ignore the case, and others do not")


_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}:,]|[^\s"\[\]{}:,]++', re.DOTALL)


def _texts(body: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the members of the top object whose values are texts, with the place of the value. `body` is valid JSON."""
    depth, name, expects = 0, "", "key"
    for token in _TOKEN.finditer(body):
        mark = token[0][:1]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
        elif depth == 1 and mark == b":":
            expects = "value"
        elif depth == 1 and mark == b",":
            expects = "key"
        elif depth == 1 and expects == "key":
            name = msgspec.json.decode(token[0], type=str)
        elif depth == 1:
            yield name, token.start(), token.end()


def read_form(body: bytes, media_type: str) -> NamedBody:
    """Find the field `model` of a multipart form; raises `BadField`."""
    found = _BOUNDARY.search(media_type)
    if found is None:
        raise BadField("content-type", "a form needs its boundary")
    parts = list(_parts(body, b"--" + (found[1] or found[2]).encode("latin-1")))
    _check_names([name for name, _, _ in parts])
    models = [(start, end) for name, start, end in parts if name == _MODEL]
    if len(models) != 1 or models[0][0] == models[0][1]:
        raise BadField(_MODEL, f"the form has it {len(models)} times" if len(models) > 1 else _NEEDED)
    ((start, end),) = models
    return NamedBody(body[start:end].decode("utf-8", "replace"), body, start, end, is_json=False)


def _parts(body: bytes, mark: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each part, and where its content is. Raises `BadField` for a part without exactly one name."""
    at = body.find(mark)
    while at >= 0:
        head = at + len(mark)
        if body[head : head + 2] == b"--":
            return
        content = body.find(b"\r\n\r\n", head)
        at = body.find(b"\r\n" + mark, head)
        if content < 0 or at < 0 or content + 4 > at:
            break
        names = _NAME.findall(body[head:content])
        if len(names) != 1 or b"name*" in body[head:content].lower():
            raise BadField("", 'each part of a form needs one name, as name="…"')
        yield names[0].decode("utf-8", "replace"), content + 4, at
        at += 2
    raise BadField("", "the form is cut off: its last boundary is missing")

"""Fetches traces from a gateway, or from a file."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from toolspeak.errors import BadRequest, ToolspeakError
from toolspeak.traces.replay import client_request
from toolspeak.traces.store import Summary
from toolspeak.traces.trace import Trace

_SECONDS, _ANSWER_SECONDS = 10.0, 600.0
"""How long to wait for a trace, and for a model."""
_OK, _WRONG, _DENIED, _UNKNOWN = 200, 400, 401, 404
_MODELS = "/models/"
_LOOKS, _PAUSE = 50, 0.1
"""How often, and with how many seconds between, to look whether a trace is complete."""


class NoGateway(ToolspeakError):
    """The gateway that should have the traces does not answer, or refuses."""


class Listing(msgspec.Struct):
    """The answer to `GET /traces`."""

    running: list[Summary] = msgspec.field(default_factory=list[Summary])
    traces: list[Summary] = msgspec.field(default_factory=list[Summary])


@dataclass(frozen=True, slots=True)
class GatewayTraces:
    """The traces of one gateway."""

    url: str
    key: str

    def listing(self, search: str = "", *, failed: bool = False, limit: int = 20) -> Listing:
        """Return the newest traces. Raises `NoGateway`."""
        query = urlencode({"search": search, "failed": int(failed), "limit": limit})
        return msgspec.json.decode(self._get(f"/traces?{query}"), type=Listing)

    def find(self, id: str) -> Trace:
        """Return the trace whose id is or begins with `id`; `last` is the newest. Raises `BadRequest`, `NoGateway`."""
        return read_trace(self._get(f"/traces/{quote(self._whole_id(id))}"))

    def _whole_id(self, id: str) -> str:
        listed = self.listing(limit=200)
        known = [one.id for one in (*listed.running, *listed.traces)]
        if not known:
            raise BadRequest(f"the gateway at {self.url} has no traces yet. Send it a request, then try again.")
        if id == "last":
            return (listed.traces or listed.running)[0].id
        alike = [one for one in known if one.startswith(id)]
        if len(alike) > 1 and id not in alike:
            some = ", ".join(one[:12] for one in alike[:5])
            raise BadRequest(f"{len(alike)} traces begin with {id}: {some}. Write more of the id.")
        return alike[0] if alike else id

    def ask_again(self, trace: Trace, settings: Mapping[str, str], model: str) -> Trace:
        """Send the client's request once more, and return the trace of the new turn. Raises `BadRequest`, `NoGateway`.

        `settings` are those of this one request, such as the dialect. `model` replaces the client's, unless empty.
        """
        client_request(trace)  # raises `BadRequest` if there is nothing to send
        path, body = (trace.path, trace.body) if not model else _with_model(trace, model)
        headers = {f"x-toolspeak-{name}": value for name, value in settings.items()}
        headers["content-type"] = "application/json"
        response, answer = self._send("POST", path, headers, body.encode(), _ANSWER_SECONDS)
        id = response.headers.get("x-toolspeak-trace", "")
        if not id or response.status in (_DENIED, _UNKNOWN, _WRONG):
            raise _refusal(response.status, answer, self.url)
        return self._ended(id)

    def _ended(self, id: str) -> Trace:
        """Return the trace of a turn whose answer has arrived. It is complete a moment after the last byte."""
        for _ in range(_LOOKS):
            found = read_trace(self._get(f"/traces/{quote(id)}"))
            if found.status:
                return found
            Event().wait(_PAUSE)
        raise NoGateway(f"the gateway at {self.url} does not complete the trace {id}. Look at its log.")

    def _get(self, path: str) -> bytes:
        response, body = self._send("GET", path, {}, None, _SECONDS)
        if response.status == _OK:
            return body
        raise _refusal(response.status, body, self.url)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        parts = urlsplit(self.url if "//" in self.url else f"http://{self.url}")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=seconds)
        keyed = {"authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, {**headers, **keyed})
            response = connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise NoGateway(
                f"no gateway answers at {self.url} ({error}). Start one with `toolspeak serve`, or pass --url URL."
            ) from None
        finally:
            connection.close()


def _with_model(trace: Trace, model: str) -> tuple[str, str]:
    """Return the path and the body of the request for another model, which Google's protocol names in the path."""
    body = msgspec.json.decode(trace.body)
    if "model" in body:
        return trace.path, msgspec.json.encode({**body, "model": model}).decode()
    head, _, tail = trace.path.rpartition(":")
    return f"{head[: head.index(_MODELS)]}{_MODELS}{quote(model, safe='')}:{tail}", trace.body


class _Error(msgspec.Struct):
    message: str = ""


class _Refusal(msgspec.Struct):
    error: _Error


def _refusal(status: int, body: bytes, url: str) -> ToolspeakError:
    if status == _DENIED:
        return NoGateway(f"the gateway at {url} requires a key. Pass --key KEY, or set TOOLSPEAK_KEY.")
    message = _message(body)
    if status == _UNKNOWN and "trace" in message:
        return BadRequest(f"{message}. `toolspeak trace` lists those that are kept.")
    return NoGateway(f"the gateway at {url} answers with status {status}: {message or 'is it toolspeak?'}")


def _message(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Refusal).error.message[:300]
    except msgspec.MsgspecError:
        return ""


def read_trace(body: bytes) -> Trace:
    """Decode a trace. Raises `BadRequest`."""
    try:
        return msgspec.json.decode(body, type=Trace)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"this is not a trace ({error}). `toolspeak trace ID --as json` writes one.") from None

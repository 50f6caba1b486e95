"""The admin API: makes, lists, rotates and revokes keys over HTTP, in a process and on a port of its own (SAFE-10).

    POST   /keys              {"tenant": "anna", "models": ["small"], "requests_per_minute": 60}
    GET    /keys
    POST   /keys/ID/rotate    {"overlap_seconds": 86400}
    DELETE /keys/ID

No gateway serves it: a fault of a public gateway cannot reach it. Each request needs the admin key, as a bearer token.
"""

import asyncio
from collections.abc import Callable
from hmac import compare_digest
from typing import Any, Final

import msgspec
import uvicorn
from typing_extensions import override

from toolspeak.config.shape import RateLimits
from toolspeak.errors import BadField, BadRequest
from toolspeak.gateway.asgi import AsgiMessage, Receive, Send
from toolspeak.gateway.key_admin import KeyAdmin
from toolspeak.gateway.key_records import DAY, KeyOrder, KeysUnavailable
from toolspeak.gateway.server import url_of
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.clock import CLOCK, Clock

_LARGEST: Final = 64 * 1024
"""Bytes of a body."""
_BEARER: Final = b"bearer "


class _NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a key."""

    tenant: str
    models: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    output_tokens_per_minute: int | None = None
    concurrent: int | None = None
    expires_seconds: int | None = None

    def order(self) -> KeyOrder:
        """Return what the key shall be."""
        limits = RateLimits(
            self.requests_per_minute, self.input_tokens_per_minute, self.output_tokens_per_minute, self.concurrent
        )
        return KeyOrder(self.tenant, self.models, limits, self.expires_seconds)


class _Rotation(msgspec.Struct, forbid_unknown_fields=True):
    """The body that rotates a key."""

    overlap_seconds: int = DAY


class _HttpError(Exception):
    """An answer without a result."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class AdminApi:
    """The ASGI application."""

    def __init__(self, admin: KeyAdmin, key: str, clock: Clock = CLOCK) -> None:
        """Take the key that clients must send."""
        self._admin: Final = admin
        self._key: Final = key.encode()
        self._clock: Final = clock

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            self._check_key(scope)
            body = await _body(receive)
            # The store blocks: a file is synchronized, Redis may be slow.
            status, result = await asyncio.to_thread(self._answer, scope["method"], scope["path"], body)
        except _HttpError as error:
            status, result = error.status, _error(str(error))
        except (BadRequest, KeysUnavailable) as error:
            status, result = error.status, _error(str(error))
        data = msgspec.json.encode(result)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
        headers.append((b"cache-control", b"no-store"))  # a new key must stay in no cache
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    def _check_key(self, scope: AsgiMessage) -> None:
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        is_right = (
            len(sent) == 1
            and sent[0][: len(_BEARER)].lower() == _BEARER
            and compare_digest(sent[0][len(_BEARER) :].strip(), self._key)
        )
        if not is_right:
            raise _HttpError(401, "the admin key is needed, as a bearer token")

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, JsonObject]:
        now = self._clock.seconds()
        match method, path.strip("/").split("/"):
            case "GET", ["keys"]:
                return 200, {"keys": [record.public(now) for record in self._admin.list()]}
            case "POST", ["keys"]:
                record, secret = self._admin.make(_read(body, _NewKey).order())
                return 201, {"key": secret, **record.public(now)}
            case "POST", ["keys", id, "rotate"]:
                record, secret = self._admin.rotate(id, _read(body or b"{}", _Rotation).overlap_seconds)
                return 201, {"key": secret, **record.public(now)}
            case "DELETE", ["keys", id]:
                return 200, self._admin.revoke(id).public(now)
            case _:
                raise _HttpError(404, "there is POST /keys, GET /keys, POST /keys/ID/rotate and DELETE /keys/ID")


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _HttpError(400, "the client is gone")
        body += message.get("body", b"")
        if len(body) > _LARGEST:
            raise _HttpError(413, f"the body has more than {_LARGEST} bytes")
        if not message.get("more_body"):
            return bytes(body)


def _read(body: bytes, kind: type[Any]) -> Any:  # noqa: ANN401 # one of the bodies above
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadField("", f"the body is not as expected: {error}") from None


def _error(message: str) -> JsonObject:
    return {"error": {"message": message}}


class _AdminServer(uvicorn.Server):
    """uvicorn that tells where it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ready: Final = ready

    @override
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                self._ready(url_of(listening))


def run_admin_api(api: AdminApi, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until a signal. `ready` is called with the URL of each listening socket."""
    config = uvicorn.Config(
        api,
        host=host,
        port=port,
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level="warning",
        h11_max_incomplete_event_size=_LARGEST,
        limit_concurrency=64,
    )
    _AdminServer(config, ready).run()

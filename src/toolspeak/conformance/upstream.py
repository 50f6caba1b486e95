r"""The scripted model server behind a gateway: it answers each request with the text of the case that it names.

A request names its case by a token in the user's message, `conformance-case-dsml-12-n7-end`: letters, digits and dashes
survive whatever a gateway does to a prompt. The number makes each request of the client unique, so that a second
request with the same token is a gateway that asks the model again.

The server speaks OpenAI Chat Completions and has no tool calling: the calls are in the text, as a model writes them.
"""

import os
import re
import socket
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from threading import Event, Thread
from typing import Any, Final, TypeAlias

import uvicorn
from typing_extensions import override

from toolspeak.conformance.cases import ConformanceCase
from toolspeak.errors import BadConfig, BadJson
from toolspeak.ir.json import Json, JsonObject, object_at
from toolspeak.text.strict import dump, parse

MODEL: Final = "conformance"
"""The model name that the server lists first."""
HELLO: Final = "hello"
"""The id of the first request, which only shows that the gateway reaches this server."""
HELLO_TEXT: Final = "Hello. This is the scripted model of toolspeak conformance."
_TOKEN: Final = re.compile(r"conformance-case-([A-Za-z0-9._-]{1,80})-n(\d{1,9})-end")
_LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a request body that are read."""
_LEAST_CUT, _MOST_PIECES = 12, 200
"""A piece of a stream has 1 to 12 characters; in a long text more, so that there are about 200 pieces."""
_START_SECONDS: Final = 30.0

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Mapping[str, Any], _Receive, _Send], Awaitable[None]]


def case_token(id: str, number: int) -> str:
    """Return the token that names a case in a message."""
    return f"conformance-case-{id}-n{number}-end"


def cut_pieces(text: str, seed: str) -> Iterator[str]:
    """Cut a text at places that only the seed decides."""
    most = max(_LEAST_CUT, 2 * len(text) // _MOST_PIECES)
    start = number = 0
    while start < len(text):
        digest = sha256(f"{seed}/{number}".encode()).digest()
        size = 1 + int.from_bytes(digest[:4]) % most
        yield text[start : start + size]
        start, number = start + size, number + 1


class ScriptedModel:
    """The answers, as an ASGI application, and a count of the requests for each token."""

    def __init__(self, cases: Sequence[ConformanceCase]) -> None:
        """Prepare the answers of these cases."""
        self._cases: Final = {case.id: case for case in cases}
        self._models: Final = (MODEL, *sorted({case.model for case in cases if case.model}))
        self.asked: Final[dict[str, int]] = {}
        """Requests by token."""
        self.unnamed = 0
        """Requests that named no case, such as probes of the gateway."""

    async def __call__(self, scope: Mapping[str, Any], receive: _Receive, send: _Send) -> None:
        """Answer one HTTP request."""
        path: str = scope["path"].rstrip("/")
        if scope["method"] == "GET" and path.endswith("/models"):
            listed: list[Json] = [
                {"id": name, "object": "model", "created": 1, "owned_by": MODEL} for name in self._models
            ]
            await _respond(send, 200, {"object": "list", "data": listed})
        elif scope["method"] == "POST" and path.endswith("/chat/completions"):
            await self._complete(await _body(receive), send)
        else:
            message = f"{scope['method']} {path}: the scripted server has only /v1/chat/completions and /v1/models"
            await _respond(send, 404, _error(message))

    async def _complete(self, body: bytes, send: _Send) -> None:
        try:
            request = parse(body.decode())
        except (BadJson, UnicodeDecodeError) as error:
            await _respond(send, 400, _error(f"the body is not JSON: {error}"))
            return
        if not isinstance(request, dict):
            await _respond(send, 400, _error("the body is not an object"))
            return
        found = _TOKEN.findall(body.decode())
        case = self._cases.get(found[-1][0]) if found else None
        token = case_token(*found[-1]) if found else ""
        if token:
            self.asked[token] = self.asked.get(token, 0) + 1
        else:
            self.unnamed += 1
        answer = _Answer(case, token, str(request.get("model", MODEL)))
        if request.get("stream") is True:
            has_usage = object_at(request, "stream_options").get("include_usage") is True
            await _stream(send, answer.frames(has_usage=has_usage))
        elif case is not None and case.deltas:
            await _respond(send, 400, _error("this case exists only as a stream"))
        else:
            await _respond(send, 200, answer.whole())


class _Answer:
    """The answer to one request."""

    def __init__(self, case: ConformanceCase | None, token: str, model: str) -> None:
        self._case: Final = case
        self._text: Final = case.text if case is not None else HELLO_TEXT
        self._token: Final = token
        self._head: Final[JsonObject] = {
            "id": f"chatcmpl-{sha256(token.encode()).hexdigest()[:24]}",
            "created": 1,
            "model": model,
        }
        tokens = len(self._text) // 4 + 1
        self._usage: Final[JsonObject] = {
            "prompt_tokens": 10,
            "completion_tokens": tokens,
            "total_tokens": 10 + tokens,
        }

    def whole(self) -> JsonObject:
        finish = self._case.finish if self._case is not None else "stop"
        message: JsonObject = {"role": "assistant", "content": self._text}
        choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    def frames(self, *, has_usage: bool) -> Iterator[bytes]:
        yield self._frame({"role": "assistant", "content": ""})
        if self._case is not None and self._case.deltas:
            yield from self._native(self._case.deltas)
        else:
            yield from (self._frame({"content": piece}) for piece in cut_pieces(self._text, self._token))
            yield self._frame({}, self._case.finish if self._case is not None else "stop")
        if has_usage:
            yield _event({**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage})
        yield b"data: [DONE]\n\n"

    def _native(self, deltas: Sequence[JsonObject]) -> Iterator[bytes]:
        is_finished = False
        for delta in deltas:
            finish = delta.get("finish_reason")
            is_finished = is_finished or finish is not None
            yield self._frame(delta, finish)
        if not is_finished:
            yield self._frame({}, "tool_calls")

    def _frame(self, delta: JsonObject, finish: Json = None) -> bytes:
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**self._head, "object": "chat.completion.chunk", "choices": [choice]})


# ---------------------------------------------------------------- HTTP


def _event(body: JsonObject) -> bytes:
    return f"data: {dump(body)}\n\n".encode()


def _error(message: str) -> JsonObject:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


async def _body(receive: _Receive) -> bytes:
    pieces = bytearray()
    while len(pieces) <= _LARGEST:
        message = await receive()
        pieces += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(pieces)


async def _respond(send: _Send, status: int, body: JsonObject) -> None:
    await send(_start(status, b"application/json"))
    await send({"type": "http.response.body", "body": dump(body).encode()})


async def _stream(send: _Send, frames: Iterator[bytes]) -> None:
    await send(_start(200, b"text/event-stream"))
    for frame in frames:
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _start(status: int, media_type: bytes) -> _Message:
    return {"type": "http.response.start", "status": status, "headers": [(b"content-type", media_type)]}


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Event) -> None:
        super().__init__(config)
        self._is_ready: Final = ready

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_ready.set()


@contextmanager
def serve_scripted(model: AsgiApp, host: str, port: int) -> Generator[str]:
    """Serve in a thread while the block runs, and give the base URL. Raises `BadConfig` if the port is taken."""
    try:
        listener = socket.create_server((host, port), backlog=512)
    except OSError as error:
        raise BadConfig(
            f"the scripted upstream cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}. Pass another "
            "--upstream-host or --upstream-port."
        ) from None
    config = uvicorn.Config(
        model, lifespan="off", log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=2
    )
    ready = Event()
    server = _Server(config, ready)
    thread = Thread(target=server.run, args=([listener],), daemon=True, name="scripted-upstream")
    thread.start()
    try:
        if not ready.wait(_START_SECONDS):
            raise BadConfig(
                f"the scripted upstream did not start on {host}:{port} within {_START_SECONDS:.0f} s. Try again."
            )
        yield f"http://{host}:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()

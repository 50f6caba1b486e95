"""Requests of the five protocols, and the shape of their errors, written from the vendors' documents."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testkit.grammar import WIRES
from testkit.scripted_upstream import JSON, SSE, STREAM_TYPE, Asked, Script, say
from testkit.vendor_answers import STREAMS, WHOLES, Answer
from testkit.vendor_requests import WRITE, Ask

__all__ = ["WIRES", "Endpoint", "answering", "error_faults", "question", "sides"]

Body = dict[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """One kind of request."""

    wire: str
    method: str
    path: str
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def question(wire: str, *, stream: bool = False, model: str = "m") -> Endpoint:
    """Return the request for a turn, with one tool."""
    path, body = WRITE[wire](Ask(stream=stream))
    if wire == "gemini":
        path = path.replace("/models/m:", f"/models/{model}:")
    else:
        body["model"] = model
    return Endpoint(wire, "POST", path, body)


def sides(wire: str) -> list[Endpoint]:
    """Return the requests of this protocol's clients other than turns."""
    body = question(wire).body or {}
    match wire:
        case "openai_chat":
            return [Endpoint(wire, "GET", "/v1/models"), Endpoint(wire, "GET", "/v1/models/m")]
        case "openai_responses":
            return [Endpoint(wire, "POST", "/v1/responses/input_tokens", body)]
        case "anthropic":
            version = {"anthropic-version": "2023-06-01"}
            return [
                Endpoint(wire, "POST", "/v1/messages/count_tokens", body),
                Endpoint(wire, "GET", "/v1/models", None, version),
                Endpoint(wire, "GET", "/v1/models/m", None, version),
            ]
        case "gemini":
            counted = {"generateContentRequest": {"model": "models/m", **body}}
            return [
                Endpoint(wire, "POST", "/v1beta/models/m:countTokens", counted),
                Endpoint(wire, "GET", "/v1beta/models"),
                Endpoint(wire, "GET", "/v1beta/models/m"),
            ]
        case _:
            shown = Endpoint(wire, "POST", "/api/show", {"model": "m"})
            return [shown, *(Endpoint(wire, "GET", f"/api/{name}") for name in ("tags", "ps", "version"))]


def answering(answer: Answer) -> Script:
    """Make a script that answers on the wire of the request, streamed or whole."""

    async def script(asked: Asked) -> None:
        wire = asked.wire
        streams = "streamGenerateContent" in asked.path if wire == "gemini" else bool(asked.json.get("stream"))
        if streams:
            # half of a surrogate pair has no UTF-8: it is sent as the JSON escape that a server would write
            await say(STREAMS[wire](answer).encode("utf-8", "backslashreplace"), STREAM_TYPE.get(wire, SSE))(asked)
        else:
            await asked.whole(200, dumped(WHOLES[wire](answer)), JSON)

    return script


def dumped(body: Body) -> bytes:
    """Write JSON."""
    return json.dumps(body).encode()


_OPENAI = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_ANTHROPIC = {**_OPENAI, 408: "timeout_error", 413: "request_too_large", 504: "timeout_error", 529: "overloaded_error"}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error_faults(wire: str, status: int, body: Body) -> list[str]:
    """Return what is wrong with an error's body; the SDKs find its message only in the right place."""
    match wire:
        case "ollama":
            wanted: Body = {"error": str}
            found: Body = body
            word = ("", "")
        case "gemini":
            wanted = {"code": int, "message": str, "status": str, "details": list}
            found = body["error"]
            default = "INTERNAL" if status >= 500 else "INVALID_ARGUMENT"
            word = (f"{found['code']} {found['status']}", f"{status} {_GEMINI.get(status, default)}")
        case "anthropic":
            wanted = {"type": str, "message": str}
            found = body["error"]
            default = "api_error" if status >= 500 else "invalid_request_error"
            word = (f"{body['type']} {found['type']}", f"error {_ANTHROPIC.get(status, default)}")
        case _:
            wanted = {"message": str, "type": str, "param": (str, type(None)), "code": str}
            found = body["error"]
            default = "server_error" if status >= 500 else "invalid_request_error"
            word = (found["type"], _OPENAI.get(status, default))
    faults = [
        f"{name} is {found.get(name)!r}" for name, kind in wanted.items() if not isinstance(found.get(name), kind)
    ]
    faults += [f"{name} is unknown" for name in found.keys() - wanted.keys()]
    return [*faults, *([f"{word[0]!r} should be {word[1]!r}"] if word[0] != word[1] else [])]


def message_of(wire: str, body: Body) -> str:
    """Return the message of an error."""
    return body["error"] if wire == "ollama" else body["error"]["message"]


def says(answer: Answer) -> Script:
    """Make a script that streams an answer over OpenAI Chat, all at once."""
    return say(STREAMS["openai_chat"](answer).encode(), SSE)


def slowly(answer: Answer, pause: float) -> Script:
    """Make a script that streams an answer over OpenAI Chat, frame by frame."""

    async def script(asked: Asked) -> None:
        asked.head(200, SSE)
        for frame in STREAMS["openai_chat"](answer).encode().split(b"\n\n"):
            await asked.chunk(frame + b"\n\n")
            await asyncio.sleep(pause)
        await asked.end()

    return script

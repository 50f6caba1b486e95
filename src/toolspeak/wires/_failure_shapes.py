r"""The words of an upstream's error, wherever its server put them.

    {"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}      OpenAI, and most others
    {"error": "m"}                                                           Ollama; TGI adds "error_type"
    {"object": "error", "message": "m", "type": "t"}                         vLLM, Mistral; llama.cpp without "object"
    {"type": "error", "error": {"type": "t", "message": "m"}}                Anthropic
    [{"error": {"code": 429, "status": "t", "message": "m", "details": []}}] Gemini, with or without the brackets
    {"detail": [{"loc": ["body", "tools"], "msg": "m", "type": "t"}]}        FastAPI; also "detail": "m"
    {"type": "response.failed", "response": {"error": {"code": "c", "message": "m"}}}
    {"error": {"message": "Provider returned error", "metadata": {"raw": "{\"message\": \"m\"}"}}}
    event: error\ndata: {"error": {"message": "m"}}
    <html><head><title>m</title>

All of them are layers of objects: the innermost text is the message, and every layer's codes count.
"""

import html
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.errors import BadFrame, BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.lines import BOM
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.text.strict import parse
from toolspeak.wires._loose import string

LONGEST_BODY: Final = 512 * 1024
"""Bytes that are read. A message needs less, but a server may quote all that its model wrote."""

_LONGEST_PAGE = 64 * 1024
_LONGEST_CODES = 500
_LONGEST_PAUSE_S = 1e9
_MOST_LAYERS = 8
_MOST_ITEMS = 16
_MOST_FRAMES = 16
_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_INNER = ("error", "response", "detail", "metadata", "raw", "base_resp", "message", "errors")
_TEXTS = ("message", "msg", "error", "detail", "raw", "status_msg", "error_description", "error_message", "Message")
_CODES = ("code", "type", "status", "error_type", "error_code", "reason", "__type")
_STATUSES = ("status_code", "http_code", "code", "status")
_ERROR = re.compile(r"[45][0-9][0-9]")
_TITLE = re.compile(r"<title[^<>]*>([^<]{0,500})", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True)
class Words:
    """What an error says. `codes` are all its codes and types; `status` is the HTTP status told inside, or 0."""

    message: str = ""
    codes: str = ""
    param: str = ""
    status: int = 0
    generation: str = ""
    """What the model wrote, where a field of its own tells (Groq)."""
    retry_after: float | None = None


def find_words(body: bytes) -> Words:
    """Read an error body of any kind; one that says nothing gives an empty message."""
    body = body[:LONGEST_BODY].strip().removeprefix(BOM)
    if body.startswith(_SSE_STARTS) and (frames := _frames(body)):
        return _words_of_frames(frames)
    text = body.decode(errors="replace")
    words = _words_of_layers(_layers(_object_in(text)))
    return words if words.message else replace(words, message=_plain(text))


def _words_of_frames(frames: list[SseFrame]) -> Words:
    """Read the last event that tells an error; the events before it are the answer that broke."""
    for frame in reversed(frames):
        words = _words_of_layers(_layers(_object_in(frame.data)))
        if words.message:
            return words
    return Words(frames[-1].data.strip())


def _frames(body: bytes) -> list[SseFrame]:
    """Return the last events only: a stream may have thousands before it breaks."""
    blocks = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rsplit(b"\n\n", _MOST_FRAMES)
    decoder = SseDecoder()
    with suppress(BadFrame):
        return decoder.feed(b"\n\n".join(blocks[-_MOST_FRAMES:])) + decoder.finish()
    return []


def _layers(value: JsonObject | None) -> list[JsonObject]:
    """List the objects that the error is wrapped in, outermost first."""
    layers: list[JsonObject] = []
    while value is not None and len(layers) < _MOST_LAYERS:
        layers.append(value)
        value = next(filter(None, (_object_in(layers[-1].get(key)) for key in _INNER)), None)
    return layers


def _object_in(value: Json) -> JsonObject | None:
    """Return an object as it is, the first one of an array, or the one that a text is the JSON of."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, list):
        value = next((item for item in value[:_MOST_ITEMS] if isinstance(item, dict)), None)
    return value if isinstance(value, dict) else None


def _parsed(text: str) -> Json:
    text = text.strip()
    if text.startswith(("{", "[")):
        with suppress(BadJson):
            return parse(text)
    return None


def _words_of_layers(layers: list[JsonObject]) -> Words:
    codes = dict.fromkeys(code for layer in layers for code in _codes(layer))
    return Words(
        message=_first(_text(layer) for layer in reversed(layers)),
        codes=" ".join(codes)[:_LONGEST_CODES],
        param=_first(_param(layer) for layer in reversed(layers)),
        status=int(_first(_status(layer) for layer in layers) or 0),
        generation=_first(string(layer.get("failed_generation")) for layer in layers),
        retry_after=next((seconds for layer in layers for seconds in _delays(layer)), None),
    )


def _text(layer: JsonObject) -> str:
    return _first(text for key in _TEXTS if (text := string(layer.get(key))).strip())


def _codes(layer: JsonObject) -> Iterator[str]:
    for item in (layer, *_details(layer)):
        yield from filter(None, (_token(item.get(key)) for key in _CODES))


def _details(layer: JsonObject) -> list[JsonObject]:
    """Return what Gemini and Anthropic say about an error beside its message."""
    details = layer.get("details")
    items = details[:_MOST_ITEMS] if isinstance(details, list) else [details]
    return [item for item in items if isinstance(item, dict)]


def _param(layer: JsonObject) -> str:
    """Return the field that is complained of; FastAPI gives it as a list that starts at the body."""
    place = layer.get("loc")
    if isinstance(place, list):
        return ".".join(filter(None, map(_token, place[:_MOST_ITEMS]))).removeprefix("body.")
    return string(layer.get("param"))


def _status(layer: JsonObject) -> str:
    return _first(told for key in _STATUSES if _ERROR.fullmatch(told := _token(layer.get(key))))


def _delays(layer: JsonObject) -> Iterator[float]:
    seconds = layer.get("retry_after")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _LONGEST_PAUSE_S:
        yield float(seconds)
    for item in _details(layer):
        if found := _DELAY.fullmatch(string(item.get("retryDelay"))):
            yield float(found[1])


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _token(value: Json) -> str:
    """Return a short word or number, however it is written: `429` and `"429"` are the same."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:_LONGEST_CODES]


def _plain(text: str) -> str:
    """Return a text as it is, and of a page its title, or what is left of it without tags."""
    text = text.strip()
    if not text.startswith("<"):
        return text
    title = _TITLE.search(text, 0, _LONGEST_PAGE)
    shown = title[1] if title and title[1].strip() else _TAG.sub(" ", text[:_LONGEST_PAGE])
    return " ".join(html.unescape(shown).split())

r"""Reads an upstream's error, whatever server wrote it, and classifies it (WIRE-5).

    400 {"error": "llama3 does not support tools"}                          ->  tools_unsupported
    404 {"error": {"message": "No endpoints found that support tool use"}}  ->  tools_unsupported
    429 {"error": {"message": "Rate limit for tools, try again in 2s"}}     ->  rate_limited, retry_after 2.0

The status says little: "no tools" comes as 400, 404, 405, 500, or inside a stream that began with 200. So the wording
decides first, rule by rule, in the order of `RULES`; the status only where the wording says nothing.

The text of an error is found in any of these shapes. All are layers of objects: the innermost text is the message, and
the codes of every layer count.

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
"""

import html
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.errors import BadFrame, BadJson
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, JsonObject, as_string
from toolspeak.text.lines import BOM
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.text.strict import parse
from toolspeak.wires.shared.failure_rules import first_rule

# ---------------------------------------------------------------- the text of an error

LONGEST_BODY: Final = 512 * 1024
"""Bytes that are read. A message needs less, but some servers quote the model's whole output."""

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
class ErrorText:
    """The text of an error. `codes` are all its codes and types; `status` is the HTTP status in the body, or 0."""

    message: str = ""
    codes: str = ""
    param: str = ""
    status: int = 0
    generation: str = ""
    """The model's text, which Groq sends in a field of its own."""
    retry_after: float | None = None


def find_error_text(body: bytes) -> ErrorText:
    """Read an error body of any shape; the message is empty if the body has none."""
    body = body[:LONGEST_BODY].strip().removeprefix(BOM)
    if body.startswith(_SSE_STARTS) and (frames := _frames(body)):
        return _text_of_frames(frames)
    text = body.decode(errors="replace")
    words = _text_of_layers(_layers(_object_in(text)))
    return words if words.message else replace(words, message=_plain(text))


def _text_of_frames(frames: list[SseFrame]) -> ErrorText:
    """Read the last event that has an error; the events before it are the interrupted answer."""
    for frame in reversed(frames):
        words = _text_of_layers(_layers(_object_in(frame.data)))
        if words.message:
            return words
    return ErrorText(frames[-1].data.strip())


def _frames(body: bytes) -> list[SseFrame]:
    """Return only the last events: a stream may have thousands before it breaks."""
    blocks = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rsplit(b"\n\n", _MOST_FRAMES)
    decoder = SseDecoder()
    with suppress(BadFrame):
        return decoder.feed(b"\n\n".join(blocks[-_MOST_FRAMES:])) + decoder.finish()
    return []


def _layers(value: JsonObject | None) -> list[JsonObject]:
    """List the objects around the error, outermost first."""
    layers: list[JsonObject] = []
    while value is not None and len(layers) < _MOST_LAYERS:
        layers.append(value)
        value = next(filter(None, (_object_in(layers[-1].get(key)) for key in _INNER)), None)
    return layers


def _object_in(value: Json) -> JsonObject | None:
    """Return an object, the first one of an array, or the one in a string of JSON."""
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


def _text_of_layers(layers: list[JsonObject]) -> ErrorText:
    codes = dict.fromkeys(code for layer in layers for code in _codes(layer))
    return ErrorText(
        message=_first(_text(layer) for layer in reversed(layers)),
        codes=" ".join(codes)[:_LONGEST_CODES],
        param=_first(_param(layer) for layer in reversed(layers)),
        status=int(_first(_status(layer) for layer in layers) or 0),
        generation=_first(as_string(layer.get("failed_generation")) for layer in layers),
        retry_after=next((seconds for layer in layers for seconds in _delays(layer)), None),
    )


def _text(layer: JsonObject) -> str:
    return _first(text for key in _TEXTS if (text := as_string(layer.get(key))).strip())


def _codes(layer: JsonObject) -> Iterator[str]:
    for item in (layer, *_details(layer)):
        yield from filter(None, (_token(item.get(key)) for key in _CODES))


def _details(layer: JsonObject) -> list[JsonObject]:
    """Return the `details` of an error, which Gemini and Anthropic send beside its message."""
    details = layer.get("details")
    items = details[:_MOST_ITEMS] if isinstance(details, list) else [details]
    return [item for item in items if isinstance(item, dict)]


def _param(layer: JsonObject) -> str:
    """Return the field that the error is about; FastAPI sends it as a list that starts with `body`."""
    place = layer.get("loc")
    if isinstance(place, list):
        return ".".join(filter(None, map(_token, place[:_MOST_ITEMS]))).removeprefix("body.")
    return as_string(layer.get("param"))


def _status(layer: JsonObject) -> str:
    return _first(told for key in _STATUSES if _ERROR.fullmatch(told := _token(layer.get(key))))


def _delays(layer: JsonObject) -> Iterator[float]:
    seconds = layer.get("retry_after")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _LONGEST_PAUSE_S:
        yield float(seconds)
    for item in _details(layer):
        if found := _DELAY.fullmatch(as_string(item.get("retryDelay"))):
            yield float(found[1])


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _token(value: Json) -> str:
    """Return a short word or number as text: `429` and `"429"` are the same."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:_LONGEST_CODES]


def _plain(text: str) -> str:
    """Return plain text as it is; of an HTML page the title, or else its text without tags."""
    text = text.strip()
    if not text.startswith("<"):
        return text
    title = _TITLE.search(text, 0, _LONGEST_PAGE)
    shown = title[1] if title and title[1].strip() else _TAG.sub(" ", text[:_LONGEST_PAGE])
    return " ".join(html.unescape(shown).split())


_FIRST_ERROR = 400
_HEAD, _TAIL = 3000, 1000
_NOTHING_QUOTED = "Tool use failed:"  # what Groq puts in place of the generation when it keeps that to itself
# From here on llama.cpp and Ollama quote what the model wrote, which must not be taken for the server's words.
# llama.cpp quotes from the place on where its parser stopped, so that the beginning may be missing. Ollama quotes only
# the arguments, without the tool's name: nothing to salvage.
_QUOTES_TEXT = re.compile(r"failed to parse input at pos \d{1,12}: ?|error parsing tool call: raw=", re.IGNORECASE)
_OLLAMA = "raw="
_MARKS = str.maketrans("", "", "`'\"\\\N{RIGHT SINGLE QUOTATION MARK}")

_STEPS = r"(?:\.?\[\d{1,9}\]|\.[\w$-]{1,64})"
_ROOTS = r"(?:messages|tools|tool_choice|input|contents|system)"
_PATH = re.compile(rf"[\w$-]{{1,64}}{_STEPS}{{0,16}}+")
# A root alone may be a word of the sentence ("Available tools: ..."): it counts in quotes, or where the message starts.
_PLACE = re.compile(rf"\b({_ROOTS}{_STEPS}{{1,16}}+)['\"`]?:|['\"`]({_ROOTS})['\"`]:|\A(?:\w{{1,64}}: )?({_ROOTS}):")
_INDEX = re.compile(r"\.?\[(\d+)\]|\.(\d+)(?=[.\[]|$)")

_SPAN = r"\d{1,9}(?:\.\d{1,9})? ?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)(?![a-z])[ ,]{0,2}"
_PAUSE = re.compile(rf"(?:try again|retry|wait) (?:in |after |for )?((?:{_SPAN}){{1,4}})", re.IGNORECASE)
_UNIT = re.compile(r"([\d.]+) ?(ms|mil|[hms])")
_SECONDS = {"ms": 0.001, "mil": 0.001, "s": 1, "m": 60, "h": 3600}


def read_failure(status: int, body: bytes) -> Failure:
    """Classify an upstream's error. `status` is 0 if none came; `body` is the response body or an event's data."""
    words = find_error_text(body)
    quoted = _QUOTES_TEXT.search(words.message)
    server_says = words.message[: quoted.end()] if quoted else words.message
    basis = _basis(status, words, server_says)
    return Failure(
        kind=_kind(basis),
        message=_shortened(words.message.strip()) or _silence(status),
        status=status,
        field=_field(words),
        salvage=_salvage(words, quoted),
        retry_after=words.retry_after if words.retry_after is not None else _pause(server_says),
        basis=basis,
    )


def status_of(kind: FailureKind) -> int:
    """Return the HTTP status for a kind of failure, for errors whose own status is of no use (0 or 200)."""
    return _STATUS[kind]


def _basis(status: int, words: ErrorText, message: str) -> tuple[int, str]:
    """Return the status and the normalised text for the rules; the text is empty if the error has none."""
    if status < _FIRST_ERROR:
        status = words.status
    if not status and not words.message:
        return 0, ""
    lines = (" ".join(line.split()) for line in (words.codes, words.param[:_TAIL], _shortened(message)))
    return status, "\n".join(lines).translate(_MARKS).lower()


def _kind(basis: tuple[int, str]) -> FailureKind:
    rule = first_rule(*basis) if any(basis) else None
    return rule.kind if rule else FailureKind.OTHER if any(basis) else FailureKind.DISCONNECTED


def _shortened(text: str) -> str:
    """Keep both ends: a server says what is wrong before or after the text that it quotes."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} … {text[-_TAIL:]}"


def _silence(status: int) -> str:
    return f"the upstream answered HTTP {status} and said nothing" if status else "the upstream gave no answer"


def _salvage(words: ErrorText, quoted: re.Match[str] | None) -> str:
    if words.generation:
        return "" if words.generation.startswith(_NOTHING_QUOTED) else words.generation
    if quoted is None or quoted[0].endswith(_OLLAMA):
        return ""
    return words.message[quoted.end() :]


def _field(words: ErrorText) -> str:
    """Return the path that the error names, indices in brackets: `messages[93].content`."""
    path = words.param
    if not _PATH.fullmatch(path):  # some servers put a whole sentence there
        place = _PLACE.search(words.message, 0, _HEAD)
        path = place[place.lastindex or 0] if place else ""
    return _INDEX.sub(lambda index: f"[{index[1] or index[2]}]", path)


def _pause(message: str) -> float | None:
    """Return the seconds of "try again in 6m0.5s"."""
    pause = _PAUSE.search(_shortened(message))
    if pause is None:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _UNIT.findall(pause[1].lower()))


_STATUS: Final = {
    kind: status
    for status, kinds in (
        (
            400,
            (
                FailureKind.TOOLS_UNSUPPORTED,
                FailureKind.TOOL_CHOICE_UNSUPPORTED,
                FailureKind.STREAMING_TOOLS_UNSUPPORTED,
                FailureKind.TOO_MANY_TOOLS,
                FailureKind.TOOL_NAME_INVALID,
                FailureKind.TOOL_CALL_ID_FORMAT,
                FailureKind.HISTORY_PAIRING,
                FailureKind.HISTORY_NEEDS_TOOLS,
                FailureKind.HISTORY_NEEDS_SIGNATURE,
                FailureKind.ROLE_ORDER,
                FailureKind.CONTENT_SHAPE,
                FailureKind.CONTEXT_LENGTH,
                FailureKind.INVALID_REQUEST,
            ),
        ),
        (401, (FailureKind.AUTH,)),
        (403, (FailureKind.PERMISSION,)),
        (404, (FailureKind.NOT_FOUND,)),
        (413, (FailureKind.TOO_LARGE,)),
        (429, (FailureKind.RATE_LIMITED,)),
        (
            502,
            (
                FailureKind.NATIVE_PARSER_FAILED,
                FailureKind.MODEL_SCHEMA_ERROR,
                FailureKind.DISCONNECTED,
                FailureKind.OTHER,
            ),
        ),
        (503, (FailureKind.TRANSIENT,)),
        (504, (FailureKind.TIMEOUT,)),
    )
    for kind in kinds
}


CUT_OFF: Final = Failure(
    FailureKind.DISCONNECTED, "the upstream closed the connection before its answer was complete", 502
)
ENDED_IN_ERROR: Final = Failure(FailureKind.OTHER, "the upstream ended its answer with an error", 502)
_ERRORS: Final = range(400, 600)


def unreadable(why: Exception) -> Failure:
    """Return the failure for bytes that are not of the wire's protocol."""
    return Failure(FailureKind.OTHER, f"the upstream's answer cannot be read: {why}", 502)


def http_status(failure: Failure) -> int:
    """Return the HTTP status of an error: the upstream's own if it is an error status, else that of its kind."""
    return failure.status if failure.status in _ERRORS else status_of(failure.kind)

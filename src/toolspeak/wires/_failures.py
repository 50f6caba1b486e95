r"""What an upstream's error means (WIRE-5), whatever server wrote it.

    400 {"error": "llama3 does not support tools"}                          ->  tools_unsupported
    404 {"error": {"message": "No endpoints found that support tool use"}}  ->  tools_unsupported
    429 {"error": {"message": "Rate limit for tools, try again in 2s"}}     ->  rate_limited, retry_after 2.0

Status codes tell little: "no tools" comes as 400, 404, 405, 500, or inside a stream that began with 200. So the wording
decides first, rule by rule, in the order of `RULES`; the status only where the wording says nothing.
"""

import re
from typing import Final

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.wires._failure_rules import first_rule
from toolspeak.wires._failure_shapes import Words, find_words

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
    """Read an upstream's error: the HTTP status (0: none came), and what came as its body or as an event's data."""
    words = find_words(body)
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
    """Return the HTTP status that tells a client of this kind, where the upstream's own is of no use (0 or 200)."""
    return _STATUS[kind]


def _basis(status: int, words: Words, message: str) -> tuple[int, str]:
    """Return the status and the text that the rules are applied to; an error that says nothing has an empty text."""
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
    """Keep both ends: a server says what is wrong before or behind what it quotes."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} … {text[-_TAIL:]}"


def _silence(status: int) -> str:
    return f"the upstream answered HTTP {status} and said nothing" if status else "the upstream gave no answer"


def _salvage(words: Words, quoted: re.Match[str] | None) -> str:
    if words.generation:
        return "" if words.generation.startswith(_NOTHING_QUOTED) else words.generation
    if quoted is None or quoted[0].endswith(_OLLAMA):
        return ""
    return words.message[quoted.end() :]


def _field(words: Words) -> str:
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

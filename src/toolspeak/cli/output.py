"""Formats the output of commands: JSON for programs (`--json`), arguments for people, hints for failures."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from toolspeak.cli.terminal import visible
from toolspeak.errors import BadJson, UpstreamFailed
from toolspeak.ir.complaint import Complaint, Fix
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.strict import dump, parse

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_SPACED: Final = {",": ", ", ":": ": "}
_OPENERS: Final = frozenset("{[")
_CLOSERS: Final = frozenset("}]")
_ODD = re.compile(r"[^ -~\n]")


# ---------------------------------------------------------------- for programs


def safe_json(value: JsonObject) -> str:
    """Write an object as UTF-8 JSON that is safe to print: characters that a terminal cannot show are escaped."""
    # Such characters occur in strings only, so escaping them afterwards leaves valid JSON.
    return _ODD.sub(_escaped, json.dumps(value, indent=2, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    return char if char.isprintable() else json.dumps(char)[1:-1]


def fix_objects(fixes: Iterable[Fix]) -> list[Json]:
    """Return the repairs of a call as objects."""
    return [{"what": fix.what, "path": fix.path} for fix in fixes]


def complaint_objects(complaints: Iterable[Complaint]) -> list[Json]:
    """Return the complaints about rejected calls as objects."""
    return [{"problem": str(one.problem), "name": one.name, "detail": one.detail} for one in complaints]


# ---------------------------------------------------------------- for people


def keyword_arguments(arguments: str) -> str:
    """Write a JSON object as keyword arguments, `city="Oslo", days=3`; any other text stays as it is, on one line."""
    try:
        value = parse(arguments)
    except BadJson:
        value = None
    if not isinstance(value, dict):
        return visible(arguments).replace("\n", " ")
    return ", ".join(f"{visible(key)}={visible(dump(one))}" for key, one in value.items())


def indented(text: str, width: int) -> Iterator[str]:
    """Lay JSON out in lines; an array or object that fits in `width` takes one. Strings and numbers are unchanged."""
    # Tokens, not parsed values: a user who approves a call must see its exact text. Parsing would merge duplicate keys
    # and rewrite numbers.
    tokens: list[str] = _TOKEN.findall(text)
    line, previous, depth = "", "", 0
    for piece in _pieces(tokens, width):
        deeper, back = previous in _OPENERS, piece in _CLOSERS
        depth += deeper - back
        if deeper or back or previous == ",":
            yield line
            line = "  " * depth
        line += ": " if piece == ":" else piece
        previous = piece
    yield line


def _pieces(tokens: list[str], width: int) -> Iterator[str]:
    """Join the tokens of each array and object that fits on one line."""
    spaced = [_SPACED.get(token, token) for token in tokens]
    sizes = [0, *accumulate(map(len, spaced))]
    ends, depth, index = _ends(tokens), 0, 0
    while index < len(tokens):
        end = ends.get(index, index) + 1
        key = len(spaced[index - 2]) + 2 if index and tokens[index - 1] == ":" else 0
        fits = 2 * depth + key + sizes[end] - sizes[index] <= width
        depth += (tokens[index] in _OPENERS and not fits) - (tokens[index] in _CLOSERS)
        yield "".join(spaced[index:end]) if fits and end > index + 1 else tokens[index]
        index = end if fits else index + 1


def _ends(tokens: list[str]) -> dict[int, int]:
    """Map the index of each opening bracket to that of its closing one."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token in _OPENERS:
            opened.append(index)
        elif token in _CLOSERS:
            ends[opened.pop()] = index
    return ends


# ---------------------------------------------------------------- hints
#
# For each kind of failure of an upstream, the next thing that a user can try.

_EMULATE: Final = "pass --mode force to emulate tools"
_HINTS: Final[dict[str, str]] = {
    FailureKind.DISCONNECTED: "is the server running, and is its URL right?",
    FailureKind.TIMEOUT: "the server may still be loading the model; try again",
    FailureKind.TRANSIENT: "try again in a moment",
    FailureKind.RATE_LIMITED: "wait a little, or use another model",
    FailureKind.AUTH: "set the preset's variable, TOOLSPEAK_UPSTREAM_KEY, or `key_env` in the configuration",
    FailureKind.PERMISSION: "use another key or another --model",
    FailureKind.NOT_FOUND: "`toolspeak models` lists the models; the URL must end before the API path, as in …/v1",
    FailureKind.CONTEXT_LENGTH: "start a new conversation, or use a model with a longer context",
    FailureKind.TOOLS_UNSUPPORTED: _EMULATE,
    FailureKind.STREAMING_TOOLS_UNSUPPORTED: _EMULATE,
    FailureKind.TOOL_CHOICE_UNSUPPORTED: _EMULATE,
    FailureKind.NATIVE_PARSER_FAILED: _EMULATE,
    FailureKind.INVALID_REQUEST: "this is the upstream's own message; its log may have details",
    FailureKind.OTHER: "this is the upstream's own message; its log may have details",
}


def hint_for(kind: str) -> str:
    """Return the hint for a kind of failure; empty if there is none."""
    return _HINTS.get(kind, "")


def with_hint(error: UpstreamFailed) -> UpstreamFailed:
    """Return the same failure with the hint in its message."""
    hint = hint_for(error.kind)
    return UpstreamFailed(f"{error} ({hint})" if hint else str(error), error.kind, error.upstream_status)

"""What every writer needs: a call's arguments as one line of JSON, and what a tool answered as text.

Arguments go out as they came in, to the character, where they are one line of strict JSON: numbers keep their digits,
and the prompt's prefix stays the same over turns (INL-8). Otherwise they are repaired and written anew. What is nested
deeper than 60 levels is beyond our own readers once a call's braces stand around it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects._marks import broken
from toolspeak.dialects._shape import Shape
from toolspeak.errors import BadJson
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Result, part_text
from toolspeak.text.repair import repair
from toolspeak.text.strict import dump, parse, without_halves, without_surrogates
from toolspeak.toolset.toolset import ToolSet

ERROR: Final = "Error: "
BARE: Final = Shape()
UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters, carriage returns too: not every server lets them pass, but JSON has escapes for them."""

_SPREAD = re.compile(r"[\r\n]|[ \t]{64}")  # over lines, or over more blanks than a reader has patience for


def arguments_of(call: Call) -> JsonObject:
    """Give a call's arguments; what cannot be repaired to an object counts as none."""
    try:
        value = repair(without_halves(call.arguments), closed=True).value
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}


def arguments_text(call: Call) -> str:
    """Give a call's arguments as one line of JSON."""
    text = call.arguments.strip()
    if not _SPREAD.search(text) and _is_object(text):
        return text
    return dump(arguments_of(call))


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse(text), dict)
    except BadJson:
        return False


def call_json(call: Call) -> str:
    """Write a call as one JSON object."""
    return BARE.begin(call.name) + arguments_text(call) + BARE.end


@dataclass(frozen=True)
class JsonCalls:
    """Writes calls as JSON objects in their shape."""

    shape: Shape

    def __call__(self, calls: Sequence[Call], tools: ToolSet) -> str:
        """Write the calls; their types need no schema."""
        del tools
        shape, (before, after) = self.shape, self.shape.around
        written = (shape.begin(call.name) + arguments_text(call) + shape.end for call in calls)
        return before + shape.separator.join(written) + after


def result_text(result: Result, error: str = ERROR) -> str:
    """Give what a tool answered as text; `error` stands before what is one."""
    parts = map(part_text, result.content)
    return without_surrogates((error if result.is_error else "") + "\n".join(parts))


def result_json(result: Result, key: str = "content") -> str:
    """Write what a tool answered as one JSON object: the tool's name, and its answer under `key` or `error`."""
    named: JsonObject = {"name": result.name} if result.name else {}
    return dump({**named, "error" if result.is_error else key: result_text(result, error="")})


def apart(text: str, *markers: str) -> str:
    """Break the markers of a frame inside its text with a backslash, so that only ours count."""
    for marker in markers:
        text = text.replace(marker, broken(marker))
    return text


def between(opener: str, text: str, closer: str) -> str:
    """Frame a text."""
    return opener + apart(text, opener.strip(), closer.strip()) + closer


def between_json(opener: str, json: str, closer: str) -> str:
    """Frame JSON; markers in its strings are broken by an escape, which changes no value."""
    for marker in (opener.strip(), closer.strip()):
        json = json.replace(marker, f"\\u{ord(marker[0]):04x}{marker[1:]}")
    return opener + json + closer


def tagged_result(tag: str, result: Result) -> str:
    """Frame what a tool answered in a tag that names the tool."""
    named = f' name="{result.name}"' if result.name else ""
    text = apart(result_text(result), f"<{tag}", f"</{tag}")
    return f"<{tag}{named}>\n{text}\n</{tag}>"


def ipython_result(result: Result) -> str:
    """Frame what a tool answered as Llama's `ipython` turns do, but in tags that are no special tokens."""
    return between_json("<ipython>\n", result_json(result, "output"), "\n</ipython>")

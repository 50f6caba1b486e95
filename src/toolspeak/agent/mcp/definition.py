"""A tool as its server describes it, and which parts of that we believe.

    files: read.file "Reads."  →  files__read_file "Reads."       a name that every upstream takes
    definition.digest                                             another definition is another digest

A definition with a name, schema or size that cannot be used is left out, with its reason. Text from a server loses the
characters that people do not see: with them it could tell a model something else than it shows to people.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from toolspeak.agent.tools.action import ToolEffect
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadSchema
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.display import cut
from toolspeak.text.schema import compile_schema

_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
"""Control characters but line ends and tabs, what turns the direction of text, half characters, Unicode tags."""
_ZERO_WIDTH: Final = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2065\u206a-\u206f\ufeff]")


def plain_text(text: str, most: int) -> str:
    """Return a result's text, cleaned, of at most so many bytes and a note. Joiners of letters stay."""
    return cut(_UNSEEN.sub("", text), most)


def plain_line(text: str, most: int) -> str:
    """Return a text that a server says of itself: zero-width characters go as well."""
    return plain_text(_ZERO_WIDTH.sub("", text), most)


def is_plain(text: str) -> bool:
    """Return whether everything in a text can be seen."""
    return not _UNSEEN.search(text) and not _ZERO_WIDTH.search(text)


# ---------------------------------------------------------------- definitions


LONGEST_NAME: Final = 64
"""What the strictest upstreams take."""
LONGEST_DESCRIPTION: Final = 2048
LONGEST_REMARK: Final = 512
"""Bytes of a description inside a schema."""
_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MARK: Final = "__"
_DIGITS: Final = 8
_REMARKS: Final = ("description", "title", "$comment")


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as its server describes it. `hints` are the server's own word on what a call does."""

    name: str
    description: str
    schema: JsonObject
    output: JsonObject | None = None
    hints: JsonObject | None = None

    @property
    def digest(self) -> str:
        """Return what changes if anything in it does."""
        whole = (self.name, self.description, self.schema, self.output, self.hints)
        return sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()


def tool_of(server: McpServer, definition: Definition) -> Tool:
    """Return what the model is told; raises `BadSchema` with the reason if it may not be told."""
    if not definition.name or not is_plain(definition.name):
        raise BadSchema("its name has characters that nobody sees")
    compile_schema(definition.schema)
    schema = _cleaned(definition.schema)
    if not isinstance(schema, dict) or not all(map(is_plain, _texts(schema))):
        raise BadSchema("its schema has characters that nobody sees")
    compile_schema(schema)
    return Tool(_name(server.name, definition.name), plain_line(definition.description, LONGEST_DESCRIPTION), schema)


def effect_of(server: McpServer, definition: Definition) -> ToolEffect:
    """Return what a call does: the user's word counts, the server's only if the user trusts it."""
    if definition.name in server.reads:
        return ToolEffect.READS
    hints = definition.hints or {}
    if server.trust and hints.get("readOnlyHint") is True:
        return ToolEffect.READS
    return ToolEffect.REPEATS if server.trust and hints.get("idempotentHint") is True else ToolEffect.ONCE


def _name(server: str, tool: str) -> str:
    """Join the names; one that is too long keeps its beginning and becomes sure by a digest."""
    name = f"{server}{_MARK}{_REFUSED.sub('_', tool)}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - _DIGITS - 1]}_{sha256(tool.encode()).hexdigest()[:_DIGITS]}"


def _cleaned(schema: Json) -> Json:
    """Copy a schema whose depth is checked, with remarks made short and plain; values and names stay as they are."""
    if isinstance(schema, list):
        return [_cleaned(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: plain_line(value, LONGEST_REMARK) if name in _REMARKS and isinstance(value, str) else _cleaned(value)
        for name, value in schema.items()
    }


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)

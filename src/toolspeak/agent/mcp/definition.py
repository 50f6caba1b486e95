"""A tool definition from a server, and the parts of it that toolspeak believes.

    files: read.file "Reads."  →  files__read_file "Reads."       a name that every upstream accepts
    definition.digest                                             changes with any change of the definition

A definition with an unusable name, schema or size is left out, with the reason. Invisible characters are removed from a
server's text: with them, a description could tell a model something that the person who approves it does not see.
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
"""Control characters except line ends and tabs, bidirectional overrides, lone surrogates, Unicode tags."""
_ZERO_WIDTH: Final = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2065\u206a-\u206f\ufeff]")


def plain_text(text: str, most: int) -> str:
    """Return a result's text without invisible characters, at most `most` bytes and a note.

    Zero-width joiners stay: some scripts and emoji need them.
    """
    return cut(_UNSEEN.sub("", text), most)


def plain_line(text: str, most: int) -> str:
    """Return a server's own description as `plain_text`, without zero-width characters either."""
    return plain_text(_ZERO_WIDTH.sub("", text), most)


def is_plain(text: str) -> bool:
    """Return whether every character of a text is visible."""
    return not _UNSEEN.search(text) and not _ZERO_WIDTH.search(text)


# ---------------------------------------------------------------- definitions


LONGEST_NAME: Final = 64
"""The limit of the strictest upstreams."""
LONGEST_DESCRIPTION: Final = 2048
LONGEST_REMARK: Final = 512
"""Maximum bytes of a description inside a schema."""
_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MARK: Final = "__"
_DIGITS: Final = 8
_REMARKS: Final = ("description", "title", "$comment")


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as its server describes it. `hints` are the server's claims about the effect of a call."""

    name: str
    description: str
    schema: JsonObject
    output: JsonObject | None = None
    hints: JsonObject | None = None

    @property
    def digest(self) -> str:
        """Return a hash of the whole definition. It changes with any part, since models act on all of them."""
        whole = (self.name, self.description, self.schema, self.output, self.hints)
        return sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()


def tool_of(server: McpServer, definition: Definition) -> Tool:
    """Return the tool for the model. Raises `BadSchema` with the reason if the definition cannot be used."""
    if not definition.name or not is_plain(definition.name):
        # Names and values of a schema cannot be cleaned like a description: the server would not recognise them.
        raise BadSchema("its name has characters that nobody sees")
    compile_schema(definition.schema)
    schema = _cleaned(definition.schema)
    if not isinstance(schema, dict) or not all(map(is_plain, _texts(schema))):
        raise BadSchema("its schema has characters that nobody sees")
    compile_schema(schema)
    return Tool(_name(server.name, definition.name), plain_line(definition.description, LONGEST_DESCRIPTION), schema)


def effect_of(server: McpServer, definition: Definition) -> ToolEffect:
    """Return the effect of a call. The user's setting decides; the server's hints count only if the user trusts it."""
    if definition.name in server.reads:
        return ToolEffect.READS
    # A server that claims to only read would get its calls past approval.
    hints = definition.hints or {}
    if server.trust and hints.get("readOnlyHint") is True:
        return ToolEffect.READS
    return ToolEffect.REPEATS if server.trust and hints.get("idempotentHint") is True else ToolEffect.ONCE


def _name(server: str, tool: str) -> str:
    """Join the names. A name that is too long is cut, and gets a digest that keeps it unique."""
    name = f"{server}{_MARK}{_REFUSED.sub('_', tool)}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - _DIGITS - 1]}_{sha256(tool.encode()).hexdigest()[:_DIGITS]}"


def _cleaned(schema: Json) -> Json:
    """Copy a schema whose depth was checked, with short and plain remarks. Values and names are unchanged."""
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

"""Shorter tool definitions, for models with little context: the same names and types, fewer words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump

CHARACTERS_PER_TOKEN: Final = 4
SHARE: Final = 0.4
"""Of the context, for tools."""
_WORDS: Final = frozenset(("title", "$schema", "$comment", "examples", "default"))
_CUTS: Final = (400, 120, 0)
"""How long a description may be, step by step."""


def compacted(tools: Sequence[Tool], context_tokens: int | None) -> tuple[Tool, ...]:
    """Shorten the tools until they leave room for the conversation; the last step keeps names and types only."""
    room = None if context_tokens is None else int(context_tokens * CHARACTERS_PER_TOKEN * SHARE)
    shorter = tuple(tools)
    for most in _CUTS:
        if room is None or _size(shorter) <= room:
            break
        shorter = tuple(_shortened(tool, most) for tool in tools)
    return shorter


def _size(tools: Sequence[Tool]) -> int:
    return sum(len(tool.name) + len(tool.description) + len(dump(tool.parameters)) for tool in tools)


def _shortened(tool: Tool, most: int) -> Tool:
    parameters = _without_words(tool.parameters, most // 4)
    return replace(tool, description=_cut(tool.description, most), parameters=parameters)


def _without_words(schema: JsonObject, most: int) -> JsonObject:
    kept: JsonObject = {}
    for key, value in schema.items():
        if key in _WORDS:
            continue
        if key == "properties" and isinstance(value, dict):
            kept[key] = {name: _inner(inner, most) for name, inner in value.items()}
        elif key == "description" and isinstance(value, str):
            kept |= {key: _cut(value, most)} if most else {}
        else:
            kept[key] = value if key in ("enum", "const", "required") else _inner(value, most)
    return kept


def _inner(value: Json, most: int) -> Json:
    if isinstance(value, dict):
        return _without_words(value, most)
    return [_inner(item, most) for item in value] if isinstance(value, list) else value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …" if most else ""

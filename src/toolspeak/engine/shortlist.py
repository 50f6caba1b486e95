"""Chooses the tools that an emulated prompt describes in full, where a client offers many (INL-11).

    detailed_tools = 8         of Claude Code's 21 tools, 8 are described and 13 are named

A small model that reads forty schemas confuses them, and needs most of its context for them. So the tools that share
words with the request are described, and the others are named in one line. A model that calls one of those is right, or
is told what was wrong with its call, as for any other tool.

Words count by how rare they are among the tools, those of a tool's name most. Tools of earlier calls and the tool that
the client demands come first. Where nothing is in common, such as between languages, the client's order decides.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from toolspeak.engine.guardrails.guardrail import own_texts
from toolspeak.errors import BadJson
from toolspeak.ir.message import Call, Role
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.toolset.memo import LARGEST, Memo
from toolspeak.toolset.toolset import ToolSet

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
"""A word, also inside of `camelCase` and `snake_case`."""
_SHORTEST, _STEM = 3, 6
"""Shorter words say nothing about a tool; longer ones are compared by their beginning, so that endings do not count."""
_OF_NAME, _OF_DESCRIPTION, _OF_PARAMETER = 3.0, 1.0, 0.5
_MOST_OF_WORD: Final = 4.0
"""A description that repeats a word is not a better one."""
_EARLIER: Final = 0.3
"""Of a word of an earlier message: a new message may ask for something else, or go on."""
_LONGEST: Final = 20_000
"""Characters of a message, or of a description, that are looked at."""
_DESCRIBED: Final = Memo[tuple[list[dict[str, float]], Counter[str]]]()
"""The words of each tool, and in how many tools a word is: an agent sends the same tools in every turn."""


def shortlist(tools: tuple[Tool, ...], request: Request, most: int) -> tuple[Tool, ...]:
    """Return at most so many tools, in the client's order; all of them if `most` is 0."""
    if not most or len(tools) <= most:
        return tools
    asked = _asked_words(request)
    described, common = _DESCRIBED.find(tools) or _described(tools)
    needed = {request.choice.name, *request.choice.allowed, *_called(request)}

    def rank(place: int) -> tuple[bool, float]:
        words = described[place]
        found = words.keys() & asked.keys()
        shared = (min(words[word], _MOST_OF_WORD) * asked[word] / common[word] for word in found)
        return tools[place].name in needed, math.fsum(shared)

    best = sorted(range(len(tools)), key=rank, reverse=True)[:most]
    return tuple(tools[place] for place in sorted(best))


def named_only(names: Iterable[str]) -> str:
    """Return the line about the tools that are not described."""
    return f"There are more tools, of which only the names are given: {', '.join(names)}. Call one if no other fits."


def _described(tools: tuple[Tool, ...]) -> tuple[list[dict[str, float]], Counter[str]]:
    described = [_words_of(tool) for tool in tools]
    common = Counter(word for words in described for word in words)
    try:
        size = ToolSet.size_of(tools)
    except BadJson:
        size = LARGEST + 1  # they are not cached: compiling them says what is wrong with them
    return _DESCRIBED.keep(tools, (described, common), size)


def _asked_words(request: Request) -> dict[str, float]:
    """Return the words of the user, each with its weight."""
    own = [message for message in request.messages if message.role is Role.USER and any(own_texts((message,)))]
    earlier = dict.fromkeys(_stems(own_texts(own[:-1])), _EARLIER)
    return earlier | dict.fromkeys(_stems(own_texts(own[-1:])), 1.0)


def _called(request: Request) -> Iterator[str]:
    yield from (part.name for message in request.messages for part in message.parts if isinstance(part, Call))


def _words_of(tool: Tool) -> dict[str, float]:
    """Return the words of a tool, each with its weight."""
    found: dict[str, float] = {}
    properties = tool.parameters.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        about = schema.get("description") if isinstance(schema, dict) else ""
        _add(found, (name, about if isinstance(about, str) else ""), _OF_PARAMETER)
    _add(found, (tool.description,), _OF_DESCRIPTION)
    _add(found, (tool.name,), _OF_NAME)
    return found


def _add(found: dict[str, float], texts: Iterable[str], weight: float) -> None:
    for word in _stems(texts):
        found[word] = found.get(word, 0.0) + weight


def _stems(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        words = (found[0] for found in _WORD.finditer(text[:_LONGEST]))
        yield from (word.casefold()[:_STEM] for word in words if len(word) >= _SHORTEST)

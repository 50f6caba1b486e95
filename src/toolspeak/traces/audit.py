"""Estimates what takes up the context of a request: each tool and each message, the largest first.

Agents send dozens of tools with every request, and small models have small contexts. The estimate is four bytes of
UTF-8 a token: no tokenizer fits every model, and the ranking does not depend on it.
"""

from dataclasses import dataclass

from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump

_BYTES_PER_TOKEN, _TOKENS_PER_MESSAGE, _TOKENS_PER_IMAGE = 4, 4, 800
_SHOWN = 40
"""Characters of a message that tell it from others."""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A tool or a message, with its estimated tokens and its share of the whole."""

    what: str
    tokens: int
    share: float


def audit(request: Request) -> list[ContextPart]:
    """Return the parts of a request, the largest first."""
    weighed = _weighed(request)
    total = sum(one.tokens for one in weighed) or 1
    parts = (ContextPart(one.what, round(one.tokens), one.tokens / total) for one in weighed)
    return sorted(parts, key=lambda part: -part.tokens)


def estimate_tokens(request: Request) -> int:
    """Return the estimated tokens of a request. Clients ask for it only to know when to compact their history."""
    return max(1, int(sum(one.tokens for one in _weighed(request))))


@dataclass(frozen=True, slots=True)
class _Weighed:
    what: str
    size: int
    """Bytes of text."""
    more: int = 0
    """Tokens besides those of the text."""

    @property
    def tokens(self) -> float:
        return self.size / _BYTES_PER_TOKEN + self.more


def _weighed(request: Request) -> list[_Weighed]:
    tools = [_Weighed(f"tool {tool.name}", _tool_bytes(tool)) for tool in request.offered()]
    return tools + [_message(number, message) for number, message in enumerate(request.messages, 1)]


def _tool_bytes(tool: Tool) -> int:
    return _bytes(tool.name) + _bytes(tool.description) + len(dump(tool.parameters))


def _message(number: int, message: Message) -> _Weighed:
    size = sum(map(_part_bytes, message.parts))
    inner = [piece for part in message.parts if isinstance(part, Result) for piece in part.content]
    images = sum(isinstance(part, Image) for part in (*message.parts, *inner))
    return _Weighed(_named(number, message), size, _TOKENS_PER_MESSAGE + _TOKENS_PER_IMAGE * images)


def _part_bytes(part: object) -> int:
    match part:
        case Text(text) | Reasoning(text):
            return _bytes(text)
        case Call():
            return _bytes(part.name) + _bytes(part.arguments)
        case Result():
            return sum(_bytes(piece.text) for piece in part.content if isinstance(piece, Text))
        case _:
            return 0


def _named(number: int, message: Message) -> str:
    words = " ".join(part.text for part in message.parts if isinstance(part, Text)).split()
    start = " ".join(words)[:_SHOWN]
    return f"message {number} ({message.role}){': ' + start if start else ''}"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))

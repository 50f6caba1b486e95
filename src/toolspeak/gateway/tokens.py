"""How many tokens a request has, about: no tokenizer fits every model, and clients only ask when to compact."""

from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump

_BYTES_PER_TOKEN = 4
_MESSAGE, _IMAGE = 4, 800


def estimate(request: Request) -> int:
    """Count four bytes of UTF-8 a token, and something for every message and image."""
    size = sum(_of_message(message) for message in request.messages) + sum(_of_tool(tool) for tool in request.offered())
    images = sum(_images(message) for message in request.messages)
    return max(1, size // _BYTES_PER_TOKEN + _MESSAGE * len(request.messages) + _IMAGE * images)


def _of_message(message: Message) -> int:
    size = 0
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                size += _bytes(text)
            case Call():
                size += _bytes(part.name) + _bytes(part.arguments)
            case Result():
                size += sum(_bytes(piece.text) for piece in part.content if isinstance(piece, Text))
            case _:
                pass
    return size


def _images(message: Message) -> int:
    inner = [piece for part in message.parts if isinstance(part, Result) for piece in part.content]
    return sum(isinstance(part, Image) for part in (*message.parts, *inner))


def _of_tool(tool: Tool) -> int:
    return _bytes(tool.name) + _bytes(tool.description) + len(dump(tool.parameters))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))

"""Messages and their parts."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from toolspeak.ir.fix import Fix
from toolspeak.ir.vendor import Vendor


class Role(StrEnum):
    """Who speaks. Results of tools are parts of a TOOL message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str
    vendor: Vendor | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought. `signature` is the vendor's opaque proof, given back unchanged.

    A signature that belongs to a call stands in front of that call, with no text of its own if there was none.
    """

    text: str
    signature: str = ""
    vendor: Vendor | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image: either base64 `data` with its `media_type`, or a `url` that we never fetch."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    vendor: Vendor | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is JSON text; `native_id` is the id as the model or vendor wrote it.

    `raw` is the model's text that it was read from (empty for native calls) and `fixes` what was repaired.
    """

    id: str
    name: str
    arguments: str
    native_id: str = ""
    raw: str = ""
    fixes: tuple[Fix, ...] = ()
    vendor: Vendor | None = None


@dataclass(frozen=True, slots=True)
class ToolReference:
    """A result's word that a deferred tool may now be called."""

    name: str
    vendor: Vendor | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """What only its own wire can say: `vendor.fields` is its whole body, `label` what others are told of it."""

    vendor: Vendor
    label: str


ResultPart: TypeAlias = Text | Image | ToolReference | Opaque


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered to the call `call_id`."""

    call_id: str
    content: tuple[ResultPart, ...]
    name: str = ""
    is_error: bool = False
    vendor: Vendor | None = None


Part: TypeAlias = Text | Reasoning | Image | Call | Result | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a role and its parts, in order."""

    role: Role
    parts: tuple[Part, ...]
    vendor: Vendor | None = None


def part_text(part: ResultPart) -> str:
    """Say in words what a piece of a result is, for readers of text; nothing is dropped without a trace."""
    match part:
        case Text(text):
            return text
        case Image(media_type):
            return f"[{media_type or 'image'} omitted]"
        case ToolReference(name):
            return f"The tool {name} is available now."
        case Opaque(label=label):
            return f"[{label} omitted]"


def result_text(result: Result) -> str:
    """Say in words what a tool answered."""
    return "\n".join(part_text(piece) for piece in result.content)

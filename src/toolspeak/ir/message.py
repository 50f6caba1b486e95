"""Messages and their parts, and the fields of one wire that have no counterpart here."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import JsonObject


@dataclass(frozen=True, slots=True)
class Vendor:
    """Fields that `wire` read and the ir does not have; only the same wire writes them back."""

    wire: str
    fields: JsonObject


class Role(StrEnum):
    """The author of a message. Tool results are parts of a TOOL message."""

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
    """The reasoning of a model. `signature` is the vendor's opaque proof, which goes back unchanged.

    A signature that belongs to a call is directly before that call; its text may be empty.
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
    """The part of a result that says that a deferred tool may now be called."""

    name: str
    vendor: Vendor | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that only its own wire understands: `vendor.fields` is its body, `label` describes it to other wires."""

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
    """Return a piece of a result as text. A piece that is not text becomes a note: nothing is dropped silently."""
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
    """Return a tool's result as text."""
    return "\n".join(part_text(piece) for piece in result.content)

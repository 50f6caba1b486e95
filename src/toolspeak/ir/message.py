"""Messages and their parts."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from toolspeak.ir.fix import Fix


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


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought. `signature` is the vendor's opaque proof, given back unchanged."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image: either base64 `data` with its `media_type`, or a `url` that we never fetch."""

    media_type: str = ""
    data: str = ""
    url: str = ""


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


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered to the call `call_id`."""

    call_id: str
    content: tuple[Text | Image, ...]
    name: str = ""
    is_error: bool = False


Part: TypeAlias = Text | Reasoning | Image | Call | Result


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a role and its parts, in order."""

    role: Role
    parts: tuple[Part, ...]

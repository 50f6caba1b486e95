"""What is known about an upstream before anybody has asked it: where it is, how it is spoken to, what it demands."""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.facts.model import Support
from toolspeak.ir.quirks import QUIRKS, Quirks


class Auth(StrEnum):
    """The header that carries the upstream's key."""

    NONE = "none"
    BEARER = "bearer"
    X_API_KEY = "x-api-key"
    X_GOOG_API_KEY = "x-goog-api-key"


@dataclass(frozen=True, slots=True)
class Preset:
    """An upstream by name. `url` is all that stands before the wire's own paths; empty if the user must say it."""

    title: str
    url: str = ""
    wire: str = "openai_chat"
    auth: Auth = Auth.BEARER
    key_env: str = ""
    """The environment variable in which people keep the key."""
    local: bool = False
    """It may run on this machine, and is looked for there when no upstream is named."""
    headers: tuple[tuple[str, str], ...] = ()
    tools: Support = Support.UNKNOWN
    quirks: Quirks = QUIRKS

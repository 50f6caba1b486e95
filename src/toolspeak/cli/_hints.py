"""What to do about an upstream that fails, in a few words."""

from typing import Final

from toolspeak.errors import UpstreamFailed
from toolspeak.ir.failure import FailureKind

_EMULATE: Final = "--mode force emulates the tools"
_HINTS: Final[dict[str, str]] = {
    FailureKind.DISCONNECTED: "is the server running, and its URL right?",
    FailureKind.TIMEOUT: "it may still be loading its model: try again",
    FailureKind.TRANSIENT: "try again in a moment",
    FailureKind.RATE_LIMITED: "wait a little, or take another model",
    FailureKind.AUTH: "its key is the preset's variable, TOOLSPEAK_UPSTREAM_KEY, or `key_env` in the file",
    FailureKind.PERMISSION: "another key or another --model may be allowed",
    FailureKind.NOT_FOUND: "`toolspeak models` lists what is there; a URL ends before the protocol's paths, as …/v1",
    FailureKind.CONTEXT_LENGTH: "begin a new conversation, or take a model with more room",
    FailureKind.TOOLS_UNSUPPORTED: _EMULATE,
    FailureKind.STREAMING_TOOLS_UNSUPPORTED: _EMULATE,
    FailureKind.TOOL_CHOICE_UNSUPPORTED: _EMULATE,
    FailureKind.NATIVE_PARSER_FAILED: _EMULATE,
}


def hint_for(kind: str) -> str:
    """Say what may help; nothing where nobody knows."""
    return _HINTS.get(kind, "")


def hinted(error: UpstreamFailed) -> UpstreamFailed:
    """Return the failure with the hint in its message."""
    hint = hint_for(error.kind)
    return UpstreamFailed(f"{error} ({hint})" if hint else str(error), error.kind, error.upstream_status)

"""What a user can do about a failure of the upstream."""

from typing import Final

from toolspeak.errors import UpstreamFailed
from toolspeak.ir.failure import FailureKind

_EMULATE: Final = "pass --mode force to emulate tools"
_HINTS: Final[dict[str, str]] = {
    FailureKind.DISCONNECTED: "is the server running, and is its URL right?",
    FailureKind.TIMEOUT: "the server may still be loading the model; try again",
    FailureKind.TRANSIENT: "try again in a moment",
    FailureKind.RATE_LIMITED: "wait a little, or use another model",
    FailureKind.AUTH: "set the preset's variable, TOOLSPEAK_UPSTREAM_KEY, or `key_env` in the configuration",
    FailureKind.PERMISSION: "use another key or another --model",
    FailureKind.NOT_FOUND: "`toolspeak models` lists the models; the URL must end before the API path, as in …/v1",
    FailureKind.CONTEXT_LENGTH: "start a new conversation, or use a model with a longer context",
    FailureKind.TOOLS_UNSUPPORTED: _EMULATE,
    FailureKind.STREAMING_TOOLS_UNSUPPORTED: _EMULATE,
    FailureKind.TOOL_CHOICE_UNSUPPORTED: _EMULATE,
    FailureKind.NATIVE_PARSER_FAILED: _EMULATE,
}


def hint_for(kind: str) -> str:
    """Return the hint for a kind of failure; empty if there is none."""
    return _HINTS.get(kind, "")


def hinted(error: UpstreamFailed) -> UpstreamFailed:
    """Return the same failure with the hint in its message."""
    hint = hint_for(error.kind)
    return UpstreamFailed(f"{error} ({hint})" if hint else str(error), error.kind, error.upstream_status)

"""Errors as clients of this wire expect them: instead of an answer as on the vendor's other wire, or in a response."""

from typing import Final

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.wires.openai_chat.errors import encode_failure

__all__ = ["encode_failure", "response_error"]

_CODES: Final = {
    FailureKind.CONTEXT_LENGTH: "context_length_exceeded",
    FailureKind.RATE_LIMITED: "rate_limit_exceeded",
    FailureKind.TRANSIENT: "server_is_overloaded",
    FailureKind.INVALID_REQUEST: "invalid_prompt",
    FailureKind.TOO_LARGE: "invalid_prompt",
}


def response_error(failure: Failure) -> JsonObject:
    """Write the error of a response that failed."""
    return {"code": _CODES.get(failure.kind, "server_error"), "message": failure.message}

"""Errors as clients of this wire expect them."""

from typing import Final

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.wires._body import dump
from toolspeak.wires._breaks import http_status
from toolspeak.wires._wire import ErrorBody, Stamp

_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_CODES: Final = {
    FailureKind.AUTH: "invalid_api_key",
    FailureKind.CONTEXT_LENGTH: "context_length_exceeded",
    FailureKind.NOT_FOUND: "model_not_found",
    FailureKind.RATE_LIMITED: "rate_limit_exceeded",
    FailureKind.TRANSIENT: "server_is_overloaded",
}
SERVER_ERRORS: Final = 500


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that comes instead of an answer."""
    del stamp
    return ErrorBody(http_status(failure), dump(error_body(failure)))


def error_body(failure: Failure) -> JsonObject:
    """Write the error, which also stands inside a stream."""
    status = http_status(failure)
    default = "server_error" if status >= SERVER_ERRORS else "invalid_request_error"
    return {
        "error": {
            "message": failure.message,
            "type": _TYPES.get(status, default),
            "param": failure.field or None,
            "code": _CODES.get(failure.kind, failure.kind.value),
        }
    }

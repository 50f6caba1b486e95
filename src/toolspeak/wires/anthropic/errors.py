"""Errors as clients of this wire expect them."""

from typing import Final

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.wires._body import dump
from toolspeak.wires._breaks import http_status
from toolspeak.wires._wire import ErrorBody, Stamp

THREAD: Final = "thread"
"""The field that asks a server to keep the conversation."""

_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SERVER_ERRORS: Final = 500
_UNAVAILABLE: Final = 503
_OVERLOADED: Final = 529


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that comes instead of an answer."""
    return ErrorBody(_status(failure), dump(error_body(failure, stamp)))


def error_body(failure: Failure, stamp: Stamp) -> JsonObject:
    """Write the error, which also stands inside a stream."""
    status = _status(failure)
    default = "api_error" if status >= _SERVER_ERRORS else "invalid_request_error"
    error: JsonObject = {"type": _TYPES.get(status, default), "message": failure.message or failure.kind.value}
    if failure.field == THREAD and status < _SERVER_ERRORS:
        # By this code the vendor's SDKs know that they have to send the whole conversation, and do so.
        error["details"] = {"error_code": "thread_unsupported_request", "unsupported": []}
    return {"type": "error", "error": error, "request_id": f"req_{stamp.id}"}


def _status(failure: Failure) -> int:
    """Return the HTTP status; this vendor has one of its own for an overloaded server."""
    status = http_status(failure)
    return _OVERLOADED if status == _UNAVAILABLE and failure.kind is FailureKind.TRANSIENT else status

"""Errors as clients of this wire expect them."""

from typing import Final

from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._body import dump
from toolspeak.wires._breaks import http_status
from toolspeak.wires._wire import ErrorBody, Stamp

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPES: Final = "type.googleapis.com/google.rpc."
SERVER_ERRORS: Final = 500


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that comes instead of an answer."""
    del stamp
    return ErrorBody(http_status(failure), dump(error_body(failure)))


def error_body(failure: Failure) -> JsonObject:
    """Write the error, which also stands inside a stream."""
    code = http_status(failure)
    default = "INTERNAL" if code >= SERVER_ERRORS else "INVALID_ARGUMENT"
    message = failure.message or failure.kind.value
    status = _STATUSES.get(code, default)
    return {"error": {"code": code, "message": message, "status": status, "details": _details(failure)}}


def _details(failure: Failure) -> list[Json]:
    details: list[Json] = []
    if failure.field:
        violation: JsonObject = {"field": failure.field, "description": failure.message}
        details.append({"@type": f"{_TYPES}BadRequest", "fieldViolations": [violation]})
    if failure.retry_after is not None:
        details.append({"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{round(failure.retry_after, 3)}s"})
    return details

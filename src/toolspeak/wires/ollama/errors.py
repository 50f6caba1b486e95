"""Errors as clients of this wire expect them."""

from toolspeak.ir.failure import Failure
from toolspeak.ir.json import JsonObject
from toolspeak.wires._body import dump
from toolspeak.wires._breaks import http_status
from toolspeak.wires._wire import ErrorBody, Stamp


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that comes instead of an answer."""
    del stamp
    return ErrorBody(http_status(failure), dump(error_body(failure)))


def error_body(failure: Failure) -> JsonObject:
    """Write the error, which also stands inside a stream; clients overlook one without words."""
    return {"error": failure.message or failure.kind.value}

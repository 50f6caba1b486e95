"""How a stream breaks, and with what status an error is answered."""

from typing import Final

import msgspec

from toolspeak.ir.event import StopReason
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.wires._failures import status_of

CUT_OFF: Final = Failure(
    FailureKind.DISCONNECTED, "the upstream closed the connection before its answer was complete", 502
)
ENDED_IN_ERROR: Final = Failure(FailureKind.OTHER, "the upstream ended its answer with an error", 502)
CUTS: Final = (StopReason.LENGTH, StopReason.FILTER)
"""The ends that can come in the middle of a call."""
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised where bytes are not the JSON that they should be."""
_ERRORS: Final = range(400, 600)


def unreadable(why: Exception) -> Failure:
    """Tell of bytes that are not the protocol's."""
    return Failure(FailureKind.OTHER, f"the upstream's answer cannot be read: {why}", 502)


def http_status(failure: Failure) -> int:
    """Return the status of an error: the upstream's own, if it is one."""
    return failure.status if failure.status in _ERRORS else status_of(failure.kind)

"""One line of log for each turn. Never a key, never a message's text; what a client wrote is escaped."""

import logging
from typing import Final

from toolspeak.engine.outcome import Outcome
from toolspeak.gateway.routes import Target
from toolspeak.gateway.visit import Visit
from toolspeak.ir.failure import Failure

_LOG: Final = logging.getLogger(__name__)
_LONGEST = 80


def log_turn(visit: Visit, outcome: Outcome, seconds: float) -> None:
    """Log what a turn came to."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    _LOG.info(
        "trace=%s wire=%s model=%s route=%s:%s plan=%r refused=%s requests=%d complaints=%d tokens=%d+%d seconds=%.3f",
        visit.marks.trace,
        visit.wire.name,
        _plain(visit.request.model),
        visit.route.place,
        _plain(visit.route.model),
        outcome.plan.line,
        outcome.refused or "nothing",
        outcome.requests,
        len(outcome.complaints),
        outcome.usage.input_tokens,
        outcome.usage.output_tokens,
        seconds,
    )


def log_failure(trace: str, target: Target, status: int, failure: Failure) -> None:
    """Log why there was no answer. Only the kind: the upstream's message may quote a key."""
    _LOG.warning("trace=%s wire=%s what=%s status=%d kind=%s", trace, target.wire, target.what, status, failure.kind)


def _plain(text: str) -> str:
    return ascii(text[:_LONGEST])[1:-1]

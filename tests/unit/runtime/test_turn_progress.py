"""`TurnProgress`: for how long a turn waited for its upstream, and the tokens of hidden requests (OBS-14)."""

from toolspeak.ir.event import Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.turn_progress import TurnProgress


def test_before_the_first_request_nothing_was_waited_for() -> None:
    assert TurnProgress().waited_until(100.0) == 0


def test_the_times_of_requests_add_up_and_the_pause_between_them_does_not_count() -> None:
    progress = TurnProgress()
    progress.sent(10.0, 100, is_streamed=True)
    assert progress.waited_until(11.5) == 1.5
    progress.end(12.0, Finished(StopReason.END, Usage(11, 7)))
    assert progress.waited_until(19.0) == 2
    progress.sent(20.0, 100, is_streamed=True)
    assert progress.waited_until(23.0) == 5
    progress.end(24.0, Failed(Failure(FailureKind.TIMEOUT, ""), Usage(3, 2)))
    assert progress.waited_until(99.0) == 6
    assert progress.first_usage == Usage(11, 7)
    assert progress.usage == Usage(14, 9)


def test_only_the_first_end_of_an_answer_counts() -> None:
    """An upstream notes the end when it has read it, and once more when its connection is closed."""
    progress = TurnProgress()
    progress.sent(10.0, 100, is_streamed=False)
    progress.end(12.0, Finished(StopReason.END, Usage(11, 7)))
    progress.end(15.0, Finished(StopReason.END, Usage(11, 7)))
    assert (progress.ended, progress.waited, progress.usage) == (12, 2, Usage(11, 7))


def test_an_answer_that_was_closed_before_its_end_has_no_tokens() -> None:
    progress = TurnProgress()
    progress.sent(10.0, 100, is_streamed=True)
    progress.end(12.0, TextDelta("It is"))
    assert (progress.waited, progress.usage) == (2, Usage())

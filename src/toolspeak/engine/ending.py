"""How an answer ends, and what of it shows."""

from collections.abc import Sequence

from toolspeak.engine.reading import Reading
from toolspeak.ir.event import Event, Failed, Finished, StopReason, TextDelta


def says(event: Event) -> bool:
    """Tell whether an event shows something: blanks are nothing."""
    return type(event) is TextDelta and not event.text.isspace()


def stop_of(reading: Reading) -> StopReason:
    """Say why it ended: with calls to run it is for them, and never without one."""
    stop = reading.stop or StopReason.END
    if reading.calls and not reading.left_open and stop is not StopReason.FILTER:
        return StopReason.CALLS
    return StopReason.END if stop is StopReason.CALLS else stop


def ends(batch: Sequence[Event]) -> bool:
    """Tell whether events end the answer."""
    return bool(batch) and isinstance(batch[-1], Finished | Failed)

"""Formats values for people: times, durations, numbers. Templates use these functions as filters."""

from collections.abc import Callable
from typing import Final

_EXACT, _MINUTE, _SHORT = 10.0, 60.0, 0.1
_THOUSAND, _MILLION = 1000, 1_000_000


def duration(seconds: float | None) -> str:
    """Return a duration with two or three digits: `84 ms`, `1.24 s`, `12.3 s`, `3 min 20 s`; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < _SHORT:
        return f"{seconds * _THOUSAND:.0f} ms"
    if seconds < _EXACT:
        return f"{seconds:.2f} s"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"


def short_duration(seconds: float | None) -> str:
    """Return a duration in at most eight characters, for columns: as `duration`, and `3:20 min` from a minute on."""
    if seconds is None or round(seconds) < _MINUTE:
        return duration(seconds)
    return f"{round(seconds) // 60}:{round(seconds) % 60:02} min"


def short_count(number: int) -> str:
    """Return a number in at most four characters: `812`, `8.1k`, `104k`, `1.2M`."""
    if number < _THOUSAND:
        return str(number)
    if number < _MILLION:
        thousands = number / _THOUSAND
        return f"{thousands:.1f}k" if thousands < _EXACT else f"{thousands:.0f}k"
    return f"{number / _MILLION:.1f}M"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `3 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{share:.0%}"


FILTERS: Final[dict[str, Callable[..., str]]] = {
    "duration": duration,
    "short_duration": short_duration,
    "count": short_count,
    "plural": plural,
    "percent": percent,
}

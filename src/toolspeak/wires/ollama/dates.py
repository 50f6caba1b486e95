"""Dates as this wire writes them, reckoned by hand: the core has no calendar.

1767323045  ->  2026-01-02T03:04:05Z

A year is taken to begin in March, so that the leap day is its last one; 400 such years, an era, have always as many
days. After Howard Hinnant's `civil_from_days`.
"""

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60
_BEFORE_1970 = 719_468  # days from the first of March of the year 0
_ERA = 146_097
_CENTURY = 36_524
_FOUR_YEARS = 1_460
_YEAR = 365
_FIVE_MONTHS = 153
_MARCH = 3


def rfc3339(seconds: int) -> str:
    """Write the seconds since 1970 as a date and a time of UTC."""
    days, rest = divmod(seconds, _DAY)
    year, month, day = _date(days)
    hour, rest = divmod(rest, _HOUR)
    minute, second = divmod(rest, _MINUTE)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def _date(days: int) -> tuple[int, int, int]:
    era, day = divmod(days + _BEFORE_1970, _ERA)
    year = (day - day // _FOUR_YEARS + day // _CENTURY - day // (_ERA - 1)) // _YEAR
    day -= _YEAR * year + year // 4 - year // 100
    month = (5 * day + 2) // _FIVE_MONTHS
    day -= (_FIVE_MONTHS * month + 2) // 5
    carry, month = divmod(month + _MARCH - 1, 12)
    return era * 400 + year + carry, month + 1, day + 1

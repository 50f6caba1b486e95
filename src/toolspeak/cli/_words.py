"""Small words that several commands say."""

import sys

from toolspeak.cli.paint import wrapped


def counted(number: int, what: str) -> str:
    """Write a number and what is counted: `1 fix`, `2 fixes`, `no calls`."""
    plural = f"{what}es" if what.endswith("x") else f"{what}s"
    return f"{number or 'no'} {what if number == 1 else plural}"


def sign(wanted: str, instead: str) -> str:
    """Return a sign, or another where standard output has no such character."""
    try:
        wanted.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return instead
    return wanted


def cut(line: str, width: int) -> str:
    """Shorten a line to what fits; 0 leaves it whole."""
    if next(wrapped(line, width)) == line:
        return line
    more = sign("…", "...")
    return next(wrapped(line, max(width - len(more), 1))) + more

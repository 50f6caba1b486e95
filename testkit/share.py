"""`pytest --share N`: runs about one case in N of each test with a long table of cases, the same ones every time.

It is for other versions of Python, where only the language can make a difference: a share of the cases still runs the
code that the whole table runs. The names of test and case alone decide which cases these are. So each test has a
different share, and a dialect or wire that one test leaves out is among the cases of another.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

SHORT_TABLE: Final = 8
"""A table of up to so many cases is kept whole: such cases are edges, chosen by hand."""


def function_of(test: str) -> str:
    """Return the id of a test without its case."""
    return test.partition("[")[0]


def shared(tests: Iterable[str], share: int) -> set[str]:
    """Return which of these tests (ids of pytest) belong to the share: every function has at least one."""
    tables: dict[str, list[str]] = {}
    for test in tests:
        tables.setdefault(function_of(test), []).append(test)
    return {test for table in tables.values() for test in _of_table(table, share)}


def _of_table(table: list[str], share: int) -> list[str]:
    if len(table) <= SHORT_TABLE:
        return table
    drawn = {test: _draw(test) for test in table}
    return [test for test in table if drawn[test] % share == 0] or [min(table, key=drawn.__getitem__)]


def _draw(test: str) -> int:
    # no CRC: it is linear, so the same cases of two functions would stay together
    return int.from_bytes(hashlib.sha256(test.encode()).digest()[:8])

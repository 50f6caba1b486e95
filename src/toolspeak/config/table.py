"""Reads one table of the file: each field is taken out by its type, and fields that are left at the end are unknown.

    table = Table({"port": "80"}, ("server",), problems)
    table.flag("port")    -> None, and `server.port: '80' is not true or false` is noted
    table.end()

A missing field and a wrong one both give None; a wrong one is also noted as a problem.
"""

import math
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from toolspeak.config.problems import Problems, Toml, TomlPath, did_you_mean, not_one_of, shown
from toolspeak.declaration import Declaration

Check: TypeAlias = Callable[[str], str | None]
"""Returns what is wrong with a string, or None. The message may show the string, so it must not check secrets."""
Choice = TypeVar("Choice", bound=StrEnum)
_VISIBLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_HABITS = {
    "api_base": "url",
    "api_key": "key",
    "api_key_env": "key_env",
    "base_url": "url",
    "emulation": "mode",
    "endpoint": "url",
    "max_retries": "retries",
    "max_rounds": "rounds",
    "provider": "preset",
    "timeout": "timeouts",
    "token": "key",
    "tool_calling_support": "support",
    "tools_emulation_mode": "mode",
}
"""Names that other programs use for our fields; an unknown field gets the right one as a hint."""
NOT_VISIBLE = "is not a string of visible ASCII characters (its value is not shown)"


class Table:
    """One table. Each field may be taken out once."""

    def __init__(self, fields: dict[str, Toml], path: TomlPath, problems: Problems) -> None:
        """Take a table as tomllib returns it, its path, and the collection of problems."""
        self.path: Final = path
        self.problems: Final = problems
        self._left: Final = dict(fields)
        self._known: Final[list[str]] = []
        self._inner: Final[list[Table]] = []

    @property
    def left(self) -> list[str]:
        """The names of the fields that are not taken out yet."""
        return list(self._left)

    def end(self) -> None:
        """Note every field that was not taken out, here and in inner tables, as unknown."""
        for name in self._left:
            habit = _HABITS.get(name)
            hint = f"; did you mean {habit!r}?" if habit in self._known else did_you_mean(name, self._known)
            self.bad(name, f"is no field here{hint or '; there are ' + ', '.join(sorted(self._known))}")
        for table in self._inner:
            table.end()

    def bad(self, name: str, problem: str) -> None:
        """Note a problem of a field."""
        self.problems.add((*self.path, name), problem)

    # ---------------------------------------------------------------- single values

    def text(self, name: str, check: Check | None = None) -> str | None:
        """Take a non-empty string."""
        value = self._taken(name)
        if value is not None and (problem := _wrong(value, check)):
            self.bad(name, problem)
            return None
        return value if isinstance(value, str) else None

    def need(self, name: str, what: str, check: Check | None = None) -> str | None:
        """Take a required string; `what` describes it in the message."""
        if name not in self._left:
            self.bad(name, f"is missing: {what}")
        return self.text(name, check)

    def secret(self, name: str) -> str | None:
        """Take a secret, which no message shows. It must fit into a header."""
        value = self._taken(name)
        self.problems.secrets += value is not None
        if value is None or (isinstance(value, str) and not secret_problem(value)):
            return value
        self.bad(name, NOT_VISIBLE)
        return None

    def one_of(self, name: str, known: Sequence[str]) -> str | None:
        """Take one of the known names."""
        return self.text(name, lambda value: None if value in known else not_one_of(value, known))

    def choice(self, name: str, kind: type[Choice]) -> Choice | None:
        """Take a member of an enumeration."""
        value = self.one_of(name, [each.value for each in kind])
        return None if value is None else kind(value)

    def flag(self, name: str) -> bool | None:
        """Take true or false."""
        value = self._taken(name)
        if value is None or isinstance(value, bool):
            return value
        self.bad(name, f"{shown(value)} is not true or false")
        return None

    def number(self, name: str, kind: type[int] | type[float], about: Declaration) -> int | float | None:
        """Take an integer or a number within its declared range."""
        value = self._taken(name)
        if value is None:
            return None
        if problem := range_problem(value, kind, about):
            self.bad(name, problem)
            return None
        return kind(value) if isinstance(value, int | float) else None

    # ---------------------------------------------------------------- many values

    def texts(self, name: str, check: Check | None = None) -> tuple[str, ...] | None:
        """Take an array of non-empty strings."""
        value = self._taken(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self.bad(name, f"{shown(value)} is not an array of strings")
            return None
        for index, each in enumerate(value):
            if problem := _wrong(each, check):
                self.problems.add((*self.path, name, index), problem)
        return tuple(each for each in value if isinstance(each, str))

    def table(self, name: str) -> "Table":
        """Take a table; an empty one if it is missing."""
        value = self._taken(name)
        return self._opened({} if value is None else value, (*self.path, name))

    def tables(self, name: str) -> dict[str, "Table"]:
        """Take a table whose values are tables, by name."""
        outer = self.table(name)
        return {inner: outer.table(inner) for inner in outer.left}

    def rows(self, name: str) -> list["Table"]:
        """Take an array of tables."""
        value = self._taken(name)
        if value is not None and not isinstance(value, list):
            self.bad(name, f"{shown(value)} is not an array of tables: write [[{name}]]")
        rows = value if isinstance(value, list) else []
        opened = [(each, self._opened(each, (*self.path, name, index))) for index, each in enumerate(rows)]
        return [table for each, table in opened if isinstance(each, dict)]

    def _opened(self, value: Toml, path: TomlPath) -> "Table":
        if not isinstance(value, dict):
            self.problems.add(path, f"{shown(value)} is not a table")
        table = Table(value if isinstance(value, dict) else {}, path, self.problems)
        self._inner.append(table)
        return table

    def _taken(self, name: str) -> Toml | None:
        self._known.append(name)
        return self._left.pop(name, None)


def range_problem(value: Toml, kind: type[int] | type[float], about: Declaration) -> str | None:
    """Return what is wrong with a number, with its unit and range; None if nothing is."""
    if (
        isinstance(value, kind | int)
        and not isinstance(value, bool)  # in Python `true` is an int
        and math.isfinite(value)
        and _is_within(value, about)
    ):
        return None
    number = "an integer" if kind is int else f"a number of {about.unit}" if about.unit else "a number"
    if about.above is not None:
        return f"{shown(value)} is not {number} above {about.above:g}"
    if about.most is not None:
        return f"{shown(value)} is not {number} from {about.least:g} to {about.most:g}"
    return f"{shown(value)} is not {number}" + (f" of at least {about.least:g}" if about.least is not None else "")


def _is_within(value: float, about: Declaration) -> bool:
    return (
        (about.least is None or value >= about.least)
        and (about.most is None or value <= about.most)
        and (about.above is None or value > about.above)
    )


def secret_problem(value: str) -> str | None:
    """Return why a header cannot carry a value; None if it can. A line break in it could forge another header."""
    return None if _VISIBLE.fullmatch(value) else NOT_VISIBLE


def _wrong(value: Toml, check: Check | None) -> str | None:
    if not isinstance(value, str) or not value:
        return f"{shown(value)} is not a string with something in it"
    return check(value) if check else None

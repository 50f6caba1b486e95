"""Reads tables of the file by their declarations, and lists all declared settings.

    read_section(table, Server)                 -> the values of a table over the defaults of its class
    read_given(table, ModelFacts)               -> {"few_shot": True}: only the values that the table has
    [each.path for each in walk(ConfigFile)]    -> ["default", …, "server.port", …, "upstreams.NAME.url", …]

A wrong value is noted with its line and then treated as absent, so that all problems of a file are reported at once.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from toolspeak.config.forms import FORMS
from toolspeak.config.problems import not_one_of
from toolspeak.config.table import Check, Table, range_problem, secret_problem
from toolspeak.declaration import Declaration, declaration_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting: its path in the file, and the data of its field and its declaration."""

    path: str
    """The path from the class that `walk` started at: `server.port`, `upstreams.NAME.url`, `keys[].tenant`."""
    field: str
    """The name of the dataclass field."""
    name: str
    """The name in its table of the file."""
    kind: Any
    """The type without None: `int`, an enumeration, `tuple[str, ...]`, a dataclass …"""
    default: Any
    about: Declaration

    @property
    def help(self) -> str:
        """The help text, without references to promises such as `(MODE-5)`."""
        return self.about.plain_help

    @property
    def otherwise(self) -> str:
        """The default in words; empty if the field's own default shows it."""
        about = self.about
        if about.otherwise or about.fallback is None:
            return about.otherwise
        written = json.dumps(about.fallback).strip('"')
        return f"`{written}`"

    @property
    def check(self) -> Check | None:
        """The check of its form, if it has one."""
        return FORMS[self.about.form].check if self.about.form else None

    @property
    def element(self) -> Any:  # noqa: ANN401 # a type
        """The type of its elements, for a mapping or an array; else its own type."""
        arguments = get_args(self.kind)
        if not arguments:
            return self.kind
        return arguments[0] if get_origin(self.kind) is tuple else arguments[1]

    @property
    def is_table(self) -> bool:
        """Whether it, or each of its elements, is a table with settings of its own."""
        return is_dataclass(self.element)

    @property
    def is_array(self) -> bool:
        """Whether it is an array, of strings or of tables."""
        return get_origin(self.kind) is tuple

    @property
    def is_mapping(self) -> bool:
        """Whether its keys are the user's own."""
        return get_origin(self.kind) is Mapping

    @property
    def choices(self) -> list[str]:
        """The values of its enumeration; empty for another type."""
        kind = self.element
        return [each.value for each in kind] if isinstance(kind, type) and issubclass(kind, StrEnum) else []


@cache
def declared_in(kind: type) -> tuple[Declared, ...]:
    """Return the settings that a dataclass declares. An inline dataclass is one entry; `walk` expands it."""
    hints = get_type_hints(kind)
    found = ((each, declaration_of(each)) for each in fields(kind))
    return tuple(
        Declared(
            about.name or each.name, each.name, about.name or each.name, _plain(hints[each.name]), each.default, about
        )
        for each, about in found
        if about is not None
    )


def _plain(hint: Any) -> Any:  # noqa: ANN401 # a type
    """Return a type without None."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return next(each for each in get_args(hint) if each is not NoneType)


def walk(kind: type, prefix: str = "") -> Iterator[Declared]:
    """Yield all settings of a dataclass and of the tables in it, each table before its settings."""
    for each in declared_in(kind):
        if each.about.is_inline:
            yield from walk(each.kind, prefix)
            continue
        path = prefix + each.name
        yield replace(each, path=path)
        if each.is_table:
            inner = f"{path}[]" if each.is_array else f"{path}.{each.about.item}" if each.is_mapping else path
            yield from walk(each.element, f"{inner}.")


# ---------------------------------------------------------------- reading


def read_section(table: Table, kind: type[T]) -> T:
    """Return the values of a table over the defaults of its class."""
    return kind(**read_given(table, kind))


def read_given(table: Table, kind: type, skip: Collection[str] = ()) -> dict[str, Any]:
    """Return the values that a table has, by field. Names in `skip` are left in the table for the caller."""
    values = {each.field: _value(table, each) for each in declared_in(kind) if each.name not in skip}
    return {field: value for field, value in values.items() if value is not None}


def _value(table: Table, each: Declared) -> Any:  # noqa: ANN401 # each type of a setting
    """Take a value out of a table; None if it is absent or wrong."""
    about, name = each.about, each.name
    if about.is_inline:
        given = read_given(table, each.kind)
        return replace(each.default, **given) if given else None
    if each.is_table:
        given = read_given(table.table(name), each.kind)
        return replace(each.default, **given) if given else None
    # The order matters below: an enumeration is a string too, and a bool is an int.
    if each.is_array:
        return table.texts(name, each.check)
    if each.choices:
        return table.choice(name, each.kind)
    if each.kind is bool:
        return table.flag(name)
    if each.kind in (int, float):
        return table.number(name, each.kind, about)
    if about.is_secret and each.check is None:
        return table.secret(name)
    return table.text(name, each.check)


# ---------------------------------------------------------------- single values


def value_problem(each: Declared, value: Any) -> str | None:  # noqa: ANN401 # of the environment or the command line
    """Return what is wrong with the value of a setting that is not in the file."""
    if each.choices:
        return None if value in each.choices else not_one_of(value, each.choices)
    if each.kind in (int, float):
        return range_problem(value, each.kind, each.about)
    if each.about.is_secret and each.check is None:
        return secret_problem(value)
    if each.check is not None:
        return each.check(value)
    return "is empty" if value == "" else None

"""Everything that a caller of the library passes, receives or catches can be imported from `toolspeak` itself."""

import inspect
import typing
from collections.abc import Iterator
from enum import Enum

import pytest

import toolspeak
from toolspeak import errors

CLOSED = {
    "Dialect": "its grammar and writer are for authors of dialects: docs/first-dialect.md",
    "TextReader": "as Dialect",
    "Config": "its sections have a reference of their own: docs/configuration-reference.md",
    "Outcome": "the engine's own record of a turn; `Answer` has every part that a caller needs",
    "Plan": "its guardrails are the engine's",
    "ModelFacts": "its quirks are for authors of wires",
    "Request": "its constraint is the engine's",
    "Stream": "a client makes it",
    "AsyncStream": "a client makes it",
}
"""Public classes whose own parts are not walked, each with the reason."""
FORWARD = {"Json": object}
"""A name that `ir.json` defines by itself."""


def _classes(hint: object) -> Iterator[type[object]]:
    if isinstance(hint, list | tuple):
        for each in typing.cast("list[object]", hint):
            yield from _classes(each)
    elif inspect.isclass(hint) and not typing.get_args(hint):
        yield hint
    elif typing.get_origin(hint) is not typing.Literal:
        yield from _classes(typing.get_args(hint))


def _hints(value: object) -> Iterator[object]:
    hints = typing.get_type_hints(value, localns=FORWARD)
    return iter([hint for name, hint in hints.items() if not name.startswith("_")])


def _signatures(name: str) -> Iterator[object]:
    for each in toolspeak.__all__:  # names are loaded on first use, and the hints of `read` are looked up among them
        getattr(toolspeak, each)
    found = getattr(toolspeak, name)
    if inspect.isfunction(found):
        yield from _hints(found)
    elif not inspect.isclass(found):
        yield found
    elif name not in CLOSED and not issubclass(found, Enum):
        yield from _hints(found)
        for each, member in vars(found).items():
            method = (
                getattr(member, "fget", None) or getattr(member, "__func__", None) or getattr(member, "func", member)
            )
            if inspect.isfunction(method) and (each == "__init__" or not each.startswith("_")):
                yield from _hints(method)


@pytest.mark.parametrize("name", [name for name in toolspeak.__all__ if name != "dialects"])
def test_every_class_in_a_signature_is_importable(name: str) -> None:
    ours = {each for hint in _signatures(name) for each in _classes(hint) if each.__module__.startswith("toolspeak")}
    assert {each.__name__ for each in ours if getattr(toolspeak, each.__name__, None) is not each} == set()


def test_the_walk_sees_what_it_should() -> None:
    """The walk would be silent if it found nothing: it finds types of arguments, results, fields and options."""
    found = {
        each.__name__
        for name in ("Client", "Answer", "Ending")
        for hint in _signatures(name)
        for each in _classes(hint)
    }
    assert {"Timeouts", "Answer", "Verdict", "Complaint", "StopReason", "Compact", "ChatOptions"} <= found


def test_every_error_is_importable() -> None:
    ours = {each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__}
    assert {each.__name__ for each in ours if getattr(toolspeak, each.__name__, None) is not each} == set()
    assert all(issubclass(each, toolspeak.ToolspeakError) for each in ours)


def test_no_reason_is_left_over() -> None:
    assert set(CLOSED) <= set(toolspeak.__all__)

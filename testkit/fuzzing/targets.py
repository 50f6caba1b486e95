"""The targets by name."""

from importlib import import_module
from typing import Final

from testkit.fuzzing.target import Target

NAMES: Final = ("http", "wires", "readers")


def load(name: str) -> Target:
    """Import a target; only the parts that it tests are loaded with it."""
    target = import_module(f"testkit.fuzzing.{name}").TARGET
    if not isinstance(target, Target):
        raise TypeError(f"{name} is not a target")
    return target

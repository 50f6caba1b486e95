"""Second choice."""

from toolspeak.runtime.sandbox.sandbox import Sandbox


def found() -> Sandbox | str:
    """Return sandlock, or why it cannot be used."""
    return "todo"

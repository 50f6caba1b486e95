"""Markers that carry a key: `<<KEY:call>>{"name": …, "arguments": …}<<KEY:end>>` (SAFE-4).

Only markers with this conversation's key are calls, so an example, an echo or an old transcript is text for certain.
"""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.errors import BadRequest

_MIN_KEY = 4


def keyed(key: str) -> Dialect:
    """Make the dialect of one key."""
    if len(key) < _MIN_KEY or not key.isalnum():
        message = f"key {key!r} is not at least {_MIN_KEY} letters and digits"
        raise BadRequest(message)
    call = Wrapper((f"<<{key}:call>>",), (f"<<{key}:end>>",), (JSON,))
    return Dialect("keyed", Grammar((call,), whole_fences=False))

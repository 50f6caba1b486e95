"""A call in text while the model writes it, and when it may leave before it is whole (CHK-7).

A call that is complete within its first `LEAST` characters of arguments comes whole, with every check. A longer one is
looked at when it has that many characters, then twice as many, and so on. Each look depends only on the beginning of
the call, never on the chunks: the same text must lead to the same turn.
"""

from collections.abc import Iterator
from typing import Final

import jiter

from toolspeak.dialects import has_placeholder
from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.turn import PartialCall
from toolspeak.text.strict import parse
from toolspeak.toolset.check import Attempt, CallChecker
from toolspeak.toolset.toolset import ToolSet

LEAST: Final = 256
"""Characters of the arguments' JSON before the first look: about 60 tokens, two seconds of a slow model."""
_LONGEST_ESCAPE: Final = 6
"""Characters of JSON that one character of the model's text becomes at most: `\\u0000`."""


class GrowingCall:
    """Collects one call."""

    def __init__(self, news: PartialCall) -> None:
        """Begin with the first news of the call, which `add` takes too."""
        self.id, self.name, self.native_id = news.id, news.name, news.native_id
        self.streams = False
        """Whether the client sees it grow."""
        self._raw: list[str] = []
        self._json: list[str] = []
        self._size, self._next_look = 0, LEAST

    def add(self, news: PartialCall) -> None:
        """Take more of the call."""
        self._raw.append(news.raw)
        self._json.append(news.json)
        self._size += len(news.json)

    @property
    def arguments(self) -> str:
        """The arguments' JSON so far."""
        return "".join(self._json)

    def looks(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the beginnings that are due, each once: of the text, and of the arguments as a value.

        A beginning that is no strict JSON is left out. The text is so short that it has always been read by then.
        """
        while self._size >= self._next_look:
            size, self._next_look = self._next_look, self._next_look * 2
            value = _value_of(self.arguments[:size])
            if value is not None:
                yield "".join(self._raw)[: size // _LONGEST_ESCAPE], value

    def completed(self, call: Call, checker: CallChecker) -> Call | None:
        """Return the call as the client saw it grow; None if the complete call is not that call.

        A fix that only the whole call allows, such as a number that came as a string, is not in what has left: then the
        arguments stay as the model wrote them, as those of a native call do. Everything else makes it another call.
        """
        if call.name != self.name:
            return None
        arguments = self.arguments
        try:
            value = parse(arguments)
            if arguments == call.arguments or value == parse(call.arguments):
                return Call(self.id, self.name, arguments, self.native_id, call.raw, call.fixes)
            checked = checker.check(Attempt(self.name, value), "", self.id)
            is_same = isinstance(checked, Call) and parse(checked.arguments) == parse(call.arguments)
        except BadJson:
            return None
        return Call(self.id, self.name, arguments, self.native_id, call.raw) if is_same else None


def _value_of(beginning: str) -> JsonObject | None:
    """Return the object that a beginning of JSON holds so far, with the string at its end; None if it is none."""
    try:
        value: Json = jiter.from_json(beginning.encode(), partial_mode="trailing-strings", catch_duplicate_keys=True)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def fits_so_far(name: str, value: JsonObject, tools: ToolSet) -> bool:
    """Return whether nothing in the beginning of a call's arguments needs a fix or a complaint."""
    if not tools.takes(name, value) or has_placeholder(Attempt(name, value)):
        return False
    fitted = tools.fit(name, value)
    return not fitted.fixes and all(problem.is_missing for problem in fitted.problems)


def may_become(value: Json, whole: Json) -> bool:
    """Return whether a value that is being written may become this one."""
    if isinstance(value, dict) and isinstance(whole, dict):
        return all(key in whole and may_become(item, whole[key]) for key, item in value.items())
    if isinstance(value, list) and isinstance(whole, list):
        return len(value) <= len(whole) and all(map(may_become, value, whole))
    if isinstance(value, str) and isinstance(whole, str):
        return whole.startswith(value)
    return type(value) is type(whole)

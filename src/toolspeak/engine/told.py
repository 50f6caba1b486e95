"""What a call says must come from what was said: small models call whatever tool there is, and fill in every field.

    related   a call is set aside if its tool's name, description and parameters share no word of meaning with the
              conversation; the question is then answered in words
    told      an optional argument is left out if nobody has said anything like its value
    both      a call in a form that nobody taught is set aside if a required argument is made up

They judge English and short conversations only; elsewhere every call counts as it is. They are guardrails for models
that need them: off unless a profile or somebody asks for them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Result, Text
from toolspeak.ir.request import Request
from toolspeak.text.mentions import LONGEST, is_english, is_mostly_told, is_number_told, meaning
from toolspeak.text.strict import dump, parse
from toolspeak.toolset.toolset import ToolSet

LEFT_OUT: Final = "left out: nobody said it"
MADE_UP: Final = "nobody said what it needs"
UNFIT: Final = "by the model's own word it cannot do what was asked"


@dataclass(frozen=True)
class Told:
    """Judges the calls of one turn. `said` is the conversation, without the contract."""

    said: str
    tools: ToolSet
    related: bool = False
    told: bool = False

    @cached_property
    def _judges(self) -> bool:
        return len(self.said) <= LONGEST and is_english(self.said)

    @cached_property
    def _meaning(self) -> frozenset[str]:
        return meaning(self.said)

    def is_unrelated(self, name: str) -> bool:
        """Return whether a tool has nothing to do with what was said."""
        if not self.related or not self._judges:
            return False
        tool = self.tools.tool(name)
        words = " ".join((tool.name, tool.description, *self.tools.ordered(name)))
        return is_english(tool.description) and self._meaning.isdisjoint(meaning(words))

    def kept(self, name: str, arguments: str) -> tuple[str, tuple[Fix, ...]]:
        """Return the arguments without those that nobody told, and what was left out."""
        value = _object(arguments) if self.told and self._judges else {}
        out = [key for key in value if key not in self.tools.required(name) and self._is_untold(name, key, value[key])]
        if not out:
            return arguments, ()
        kept = {key: inner for key, inner in value.items() if key not in out}
        return dump(kept), tuple(Fix(LEFT_OUT, f"/{key}") for key in out)

    def is_made_up(self, name: str, arguments: str) -> bool:
        """Return whether a call lacks what it needs: a required argument says what nobody told."""
        value = _object(arguments) if self.related and self.told and self._judges else {}
        return any(key in value and self._is_untold(name, key, value[key]) for key in self.tools.required(name))

    def _is_untold(self, name: str, key: str, value: Json) -> bool:
        schema = self.tools.schema_of(name, key)
        if "enum" in schema or "const" in schema:
            return False
        values = value if isinstance(value, list) else [value]
        return bool(values) and not any(_may_be_told(one, self.said) for one in values)


def said_in(request: Request) -> str:
    """Return all that was said in a conversation, by whomever."""
    parts = (part for message in request.messages for part in message.parts)
    return "\n".join(_texts(parts))


def _texts(parts: Iterable[object]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Result):
            yield from _texts(part.content)


def _may_be_told(value: Json, said: str) -> bool:
    """Return whether a value comes from what was said; of what is no word and no number, nobody can say."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return True
    return is_mostly_told(value, said) if isinstance(value, str) else is_number_told(value, said)


def _object(arguments: str) -> JsonObject:
    try:
        value = parse(arguments)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}

"""Writing arguments as plain texts, as the dialects with tags do, where they are read back as what they are.

Whether they are is asked of the reading side: its lexer says whether a text holds a tag that matters, and the tool's
schema says what type the text would become. In doubt, a dialect writes all of the call's arguments as JSON instead.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from toolspeak.dialects._tagged import Role, role_of
from toolspeak.dialects._tags import Tag, XmlTags
from toolspeak.dialects._write import UNSEEN, arguments_of
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.text.coerce import typed
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet

CDATA: Final = "<![CDATA["

_TAGS = XmlTags()
_KEY = re.compile(r"[\w.\-]{1,128}")


def texts_of(call: Call, tools: ToolSet, is_data: Callable[[str], bool]) -> list[tuple[str, str]] | None:
    """Give keys and values as plain texts; None if one would not be read back as it is."""
    texts: list[tuple[str, str]] = []
    for key, value in arguments_of(call).items():
        text = value if isinstance(value, str) else dump(value)
        if not _KEY.fullmatch(key) or UNSEEN.search(text) or not is_data(text):
            return None
        if not _is_typed_back(call.name, key, text, value, tools):
            return None
        texts.append((key, text))
    return texts


def _is_typed_back(name: str, key: str, text: str, value: Json, tools: ToolSet) -> bool:
    """Return whether the schema makes of the text what it was; a tool that is gone has no schema."""
    read = tools.typed(name, key, text) if name in tools.names else typed(text, {})
    return read.value == text if isinstance(value, str) else dump(read.value) == text


def has_no_roles(text: str, call: Call, tools: ToolSet) -> bool:
    """Return whether no tag in the text means anything to a reader of tagged parameters."""
    known = tools.properties(call.name) if call.name in tools.names else frozenset[str]()
    return all(role_of(tag) is Role.OTHER and tag.name not in known for tag in tags_in(text))


def tags_in(text: str) -> Iterator[Tag]:
    """Find all tags in a text; none can hold another, so this is one pass."""
    at = text.find("<")
    while at >= 0:
        tag = _TAGS.at(text, at, final=True)
        if tag:
            yield tag
        at = text.find("<", at + 1)

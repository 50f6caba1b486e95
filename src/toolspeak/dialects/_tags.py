"""Tags of model markup, read without an XML parser: loose quotes, namespaces, lost slashes, odd bars.

<function=shell>  <parameter name="city">  </parameter/>  <｜DSML｜invoke name="shell">  <|open|>call tool="f"<|sep|>
"""

import re
from typing import Final, Literal

from msgspec import Struct

_TAG = re.compile(
    r"<(?:(?P<esc>\\)?(?P<close>/))?\s{0,4}(?:[|｜‖]{1,2}\s?DSML\s?[|｜‖]{1,2}\s?|[A-Za-z_][\w\-]{0,40}:)?"
    r"(?P<name>[A-Za-z_][\w.\-]{0,127})(?P<rest>[^<>]{0,300})>"
)
_TAG_CUT = re.compile(r"<[^<>]{0,512}\Z")  # longer than any tag, so that a cut changes nothing
_XTML = re.compile(r"<\|(?P<kind>open|close)\|>(?P<name>[A-Za-z_][\w.\-]*)(?P<rest>[^<>]{0,512})<\|sep\|>")
_XTML_CUT = re.compile(r"<(?:\|(?:[a-z]{0,5}(?:\|(?:>[^<>]{0,512}(?:<\|?[a-z]{0,3}\|?)?)?)?)?)?\Z")
_ATTRIBUTE = re.compile(r"""([A-Za-z_][\w\-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))""")


class Tag(Struct, frozen=True):
    """A tag: `<name=value>`, `<name key="…">`, `</name>`; `raw` is all of it.

    A Struct, since a value may have a tag every ten characters: 100 KB of them took 170 ms (found by the fuzzer).
    """

    name: str
    raw: str
    closes: bool = False
    value: str = ""
    empty: bool = False
    escaped: bool = False
    """It closes with `<\\/`: the model has written its markup as if inside a JSON string."""
    attributes: dict[str, str] = {}  # msgspec copies it


class XmlTags:
    """`<…>`, with an optional token in front of each tag (MiniMax M3)."""

    def __init__(self, prefix: str = "") -> None:
        """Expect `prefix` before each tag, or nothing."""
        self.prefix = prefix
        self.first: Final = prefix[0] if prefix else "<"

    def at(self, text: str, pos: int, *, final: bool) -> Tag | Literal[""] | None:
        """Return the tag at `pos`, `""` to wait for more, None if there is no tag."""
        start = pos
        if self.prefix:
            if not text.startswith(self.prefix, pos):
                return "" if not final and self.prefix.startswith(text[pos:]) else None
            pos += len(self.prefix)
            pos += len(text[pos:]) - len(text[pos:].lstrip()) if text[pos : pos + 1].isspace() else 0
        if pos == len(text):
            return None if final else ""
        found = _TAG.match(text, pos)
        if found is None:
            return "" if not final and _TAG_CUT.match(text, pos) else None
        escaped, closes, name, rest = found.groups()
        raw = text[start : found.end()]
        if not rest:  # most tags
            return Tag(name, raw, closes is not None, "", False, escaped is not None)  # noqa: FBT003
        return _tag(name, rest, raw, closes=closes is not None, escaped=escaped is not None)


class XtmlTags:
    """`<|open|>name attributes<|sep|>` and `<|close|>name<|sep|>` (Kimi K3)."""

    def __init__(self) -> None:
        """Know the first character of every tag."""
        self.first: Final = "<"

    def at(self, text: str, pos: int, *, final: bool) -> Tag | Literal[""] | None:
        """Return the tag at `pos`, `""` to wait for more, None if there is no tag."""
        found = _XTML.match(text, pos)
        if found is None:
            return "" if not final and _XTML_CUT.match(text, pos) else None
        return _tag(found["name"], found["rest"], found.group(), closes=found["kind"] == "close", escaped=False)


def _tag(name: str, rest: str, raw: str, *, closes: bool, escaped: bool) -> Tag:
    empty = rest.rstrip().endswith("/") and not closes
    rest = rest.rstrip().removesuffix("/")
    value = rest[1:].strip().strip("\"'") if rest.startswith("=") else ""
    attributes = {key: double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(rest) if not value}
    return Tag(name, raw, closes, value, empty, escaped, attributes)

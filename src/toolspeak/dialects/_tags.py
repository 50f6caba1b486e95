"""Tags of model markup, read without an XML parser: loose quotes, namespaces, lost slashes, odd bars.

<function=shell>  <parameter name="city">  </parameter/>  <｜DSML｜invoke name="shell">  <|open|>call tool="f"<|sep|>
"""

import re
from dataclasses import dataclass, field
from typing import Final, Literal

_TAG = re.compile(
    r"<(?:(?P<esc>\\)?(?P<close>/))?\s{0,4}(?:[|｜‖]{1,2}\s?DSML\s?[|｜‖]{1,2}\s?|[A-Za-z_][\w\-]{0,40}:)?"
    r"(?P<name>[A-Za-z_][\w.\-]{0,127})(?P<rest>[^<>]{0,300})>"
)
_TAG_CUT = re.compile(r"<[^<>]{0,512}\Z")  # longer than any tag, so that a cut changes nothing
_XTML = re.compile(r"<\|(?P<kind>open|close)\|>(?P<name>[A-Za-z_][\w.\-]*)(?P<rest>[^<>]{0,512})<\|sep\|>")
_XTML_CUT = re.compile(r"<(?:\|(?:[a-z]{0,5}(?:\|(?:>[^<>]{0,512}(?:<\|?[a-z]{0,3}\|?)?)?)?)?)?\Z")
_ATTRIBUTE = re.compile(r"""([A-Za-z_][\w\-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))""")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag: `<name=value>`, `<name key="…">`, `</name>`; `raw` is all of it."""

    name: str
    raw: str
    closes: bool = False
    value: str = ""
    empty: bool = False
    escaped: bool = False
    """It closes with `<\\/`: the model has written its markup as if inside a JSON string."""
    attributes: dict[str, str] = field(default_factory=dict[str, str])


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
        return _tag(found, text[start : found.end()], closes=bool(found["close"]), escaped=bool(found["esc"]))


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
        return _tag(found, found.group(), closes=found["kind"] == "close", escaped=False)


def _tag(found: re.Match[str], raw: str, *, closes: bool, escaped: bool) -> Tag:
    rest = found["rest"]
    empty = rest.rstrip().endswith("/") and not closes
    rest = rest.rstrip().removesuffix("/")
    value = rest[1:].strip().strip("\"'") if rest.startswith("=") else ""
    attributes = {key: double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(rest) if not value}
    return Tag(found["name"], raw, closes, value, empty, escaped, attributes)

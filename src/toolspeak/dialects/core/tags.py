"""Tags of model markup, and the plain text between them, without an XML parser.

    <function=shell>   <parameter name="city">   </parameter/>
    <｜DSML｜invoke name="shell">   <|open|>call tool="f"<|sep|>

Models write loose quotes, swap or lose namespaces, lose slashes and retype bars, and their values hold unescaped markup
of their own: no XML parser reads that. Only the grammar around a value decides where the value ends.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.text.scan import Markers

_TAG = re.compile(
    r"<(?:(?P<esc>\\)?(?P<close>/))?\s{0,4}(?:[|｜‖]{1,2}\s?DSML\s?[|｜‖]{1,2}\s?|[A-Za-z_][\w\-]{0,40}:)?"
    r"(?P<name>[A-Za-z_][\w.\-]{0,127})(?P<rest>[^<>]{0,300})>"
)
_TAG_CUT = re.compile(r"<\\?/?\s{0,4}(?:[|｜‖A-Za-z_][^<>]{0,512})?\Z")  # more than any tag: a cut changes nothing
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
        tag = _tag(found["name"], found["rest"], found.group(), closes=found["kind"] == "close", escaped=False)
        if "&" not in found["rest"]:
            return tag
        return replace(tag, attributes={key: _unescaped(value) for key, value in tag.attributes.items()})


_ENTITIES: Final = (("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
"""The escapes that Kimi K3's own encoder writes in attributes. The ampersand is the last: `&amp;lt;` is `&lt;`."""


def _unescaped(value: str) -> str:
    for entity, char in _ENTITIES:
        value = value.replace(entity, char)
    return value


def _tag(name: str, rest: str, raw: str, *, closes: bool, escaped: bool) -> Tag:
    empty = rest.rstrip().endswith("/") and not closes
    rest = rest.rstrip().removesuffix("/")
    value = rest[1:].strip().strip("\"'") if rest.startswith("=") else ""
    attributes = {key: double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(rest) if not value}
    return Tag(name, raw, closes, value, empty, escaped, attributes)


_BLANK = re.compile(r"\s*")
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


class TagLexer(Protocol):
    """Finds tags; `first` is the character they start with."""

    @property
    def first(self) -> str:
        """Return the first character of every tag."""
        ...

    def at(self, text: str, pos: int, *, final: bool) -> Tag | Literal[""] | None:
        """Return the tag at `pos`, `""` to wait, None for no tag."""
        ...


Ends: TypeAlias = Callable[[Tag, str, int, bool], bool | None]
"""Does this tag, of which `text` goes on at this place, end the value? None asks for more text."""


class TextValue:
    """Collects the text up to the tag that ends it; that tag is left for the caller."""

    def __init__(self, tags: TagLexer, ends: Ends) -> None:
        """Start after the opening tag."""
        self._tags, self._ends = tags, ends
        self._parts: list[str] = []
        self._cdata: bool | None = None  # None: the value has not begun
        self._cdata_tail = ""  # the end of the CDATA section around the value, and the blanks after it

    @property
    def parts(self) -> Sequence[str]:
        """The value in pieces."""
        return self._parts

    @property
    def may_be_rewritten(self) -> bool:
        """Return whether the value so far may change: a CDATA section around it may turn out to be data."""
        return self._cdata is not False or self._cdata_tail != ""

    @property
    def raw(self) -> str:
        """The value to the byte."""
        return "".join(self._parts)

    @property
    def text(self) -> str:
        """The value, without the one newline on each side that templates add."""
        whole = self.raw
        if whole.startswith("\n"):
            return whole[1:].removesuffix("\n")
        return whole

    def extend(self, text: str) -> None:
        """Add text that has been taken for markup after the value; a CDATA section before it is data then."""
        if self._cdata_tail:
            self._parts = [_CDATA, *self._parts, self._cdata_tail]
            self._cdata_tail = ""
        self._parts.append(text)

    @property
    def at_line_start(self) -> bool:
        """Return whether the value so far ends a line."""
        last = next((part for part in reversed(self._parts) if part), "")
        return last.endswith("\n")

    @property
    def is_after_tag(self) -> bool:
        """Return whether only blanks follow a tag at the end of the value so far."""
        last = next((part for part in reversed(self._parts) if part and not part.isspace()), "")
        return last.rstrip().endswith(">")

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, Tag | None]:
        """Consume; return the tag that ends the value, or None for more."""
        if self._cdata is None:
            pos = self._begin(text, pos, final=final)
        while self._cdata is not None and pos < len(text):
            if self._cdata:
                pos, more = self._in_cdata(text, pos, final=final)
                if not more:
                    return pos, None
                continue
            at = text.find(self._tags.first, pos)
            end = len(text) if at < 0 else at
            if end > pos:
                self._parts.append(text[pos:end])
            pos = end
            if at < 0:
                break
            step, ending = self._tag(text, pos, final=final)
            if ending is not None or step == 0:
                return pos, ending
            self._parts.append(text[pos : pos + step])
            pos += step
        return pos, None

    def _begin(self, text: str, pos: int, *, final: bool) -> int:
        head = text[pos : pos + len(_CDATA)]
        if not final and len(head) < len(_CDATA) and _CDATA.startswith(head):
            return pos
        self._cdata = head == _CDATA
        return pos + len(_CDATA) if self._cdata else pos

    def _in_cdata(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        end = text.find(_CDATA_END, pos)
        if end >= 0:
            self._parts.append(text[pos:end])
            return self._cdata_end(text, end, final=final)
        keep = 0 if final else len(_CDATA_END) - 1
        safe = max(pos, len(text) - keep)
        self._parts.append(text[pos:safe])
        return safe, False

    def _cdata_end(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        """End the section only before a tag: a file may hold sections of its own, and their ends are data."""
        after = pos + len(_CDATA_END)
        blank = _BLANK.match(text, after)
        at = blank.end() if blank else after
        ends = self._ends_cdata(text, at, final=final) if at - after <= MAX_BLANKS else False
        if ends is None:
            return pos, False
        self._cdata = not ends
        if ends:
            self._cdata_tail = text[pos:at]
            return at, True
        self._parts.append(_CDATA_END)
        return after, True

    def _ends_cdata(self, text: str, pos: int, *, final: bool) -> bool | None:
        if pos == len(text):
            return False if final else None
        tag = self._tags.at(text, pos, final=final)
        if isinstance(tag, Tag):
            return tag.closes and self._ends(tag, text, pos + len(tag.raw), final)
        return None if tag == "" else False

    def _tag(self, text: str, pos: int, *, final: bool) -> tuple[int, Tag | None]:
        """Return how much of the text at `pos` is data (0: wait), or the tag that ends the value."""
        tag = self._tags.at(text, pos, final=final)
        if tag is None:
            return 1, None
        if isinstance(tag, str):
            return 0, None
        ends = self._ends(tag, text, pos + len(tag.raw), final)
        if ends is None:
            return 0, None
        return len(tag.raw), tag if ends else None


def followed(  # noqa: PLR0913  (a lookahead has that many parts; they are all plain)
    text: str,
    pos: int,
    *,
    final: bool,
    tags: TagLexer,
    enders: Markers,
    accepts: Callable[[Tag], bool],
    at_end: bool = True,
) -> bool | None:
    """Return whether after blanks comes the end, an ender, or a tag that is accepted. None asks for more text.

    Without `at_end`, the end of the text does not count.
    """
    blank = _BLANK.match(text, pos)
    pos, start = (blank.end() if blank else pos), pos
    if pos - start > MAX_BLANKS:
        return False
    if pos == len(text):
        return at_end if final else None
    ender = enders.match(text, pos, final=final)
    if ender:
        return True
    tag = tags.at(text, pos, final=final)
    if tag is None or isinstance(tag, str):
        return False if tag is None and ender is None else None
    return accepts(tag)

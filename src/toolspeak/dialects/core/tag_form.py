"""G3, arguments as tags: `<function=f><parameter=k>v</parameter></function>` and its relatives.

The names of call and parameter are in an attribute, after `=`, or are the tag's own name. Values are raw text, typed by
the schema. A JSON object may replace the parameters.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from typing_extensions import override

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.dialects.core.json_form import JsonBody
from toolspeak.dialects.core.settle import TaggedCall, TextInTags
from toolspeak.dialects.core.tags import Tag, TagLexer, TextValue, XmlTags, XtmlTags, followed
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.toolset.check import Attempt, TextKind

CALL_TAGS: Final = ("function", "invoke", "call")
PARAMETER_TAGS: Final = ("parameter", "param", "value", "argument")
_NAME_ATTRIBUTES: Final = ("name", "tool", "key")
_TEXT_TYPES: Final = ("raw", "string", "str", "text")
_BLANK = re.compile(r"\s*")


class TagRole(Enum):
    """The role of a tag in the call around it."""

    CALL = auto()
    CALL_END = auto()
    PARAMETER = auto()
    PARAMETER_END = auto()
    NAME = auto()
    SKIPPED = auto()
    OTHER = auto()


def name_in_tag(tag: Tag) -> str:
    """Return the name that a tag carries in its value or an attribute."""
    return tag.value or next((tag.attributes[key] for key in _NAME_ATTRIBUTES if key in tag.attributes), "")


def tag_role(tag: Tag) -> TagRole:
    """Tell the role of a tag by its name."""
    is_call = tag.name in CALL_TAGS or (tag.name == "tool_call" and (tag.closes or "name" in tag.attributes))
    if is_call:
        return TagRole.CALL_END if tag.closes else TagRole.CALL
    if tag.name.startswith(PARAMETER_TAGS) and tag.name != "parameters":
        return TagRole.PARAMETER_END if tag.closes else TagRole.PARAMETER
    if tag.name == "tool_name":
        return TagRole.OTHER if tag.closes else TagRole.NAME
    return TagRole.SKIPPED if tag.name == "parameters" else TagRole.OTHER


class TagReader(TaggedCall):
    """Reads one call."""

    def __init__(self, scope: Scope, tags: TagLexer, *, elements: bool = False) -> None:
        """Start before the call's tag; with `elements`, its name is the tool's."""
        super().__init__(self._head, scope, tags)
        self._elements = elements
        self._call_tag = ""
        self._keys: set[str] = set()
        self._key, self._key_tag, self._last_tag = "", "", ""
        self._kind: TextKind = "by_schema"
        self._is_laid_out = False
        self._body: JsonBody | None = None

    def _role(self, tag: Tag) -> TagRole:
        if self._elements and tag.name == self._call_tag:
            return TagRole.CALL_END if tag.closes else TagRole.CALL
        if self._key_tag and tag.closes and tag.name.startswith(self._key_tag):
            return TagRole.PARAMETER_END
        if self._elements:
            return TagRole.PARAMETER if not tag.closes and self._is_property(tag.name) else TagRole.OTHER
        role = tag_role(tag)
        if role is TagRole.OTHER and not tag.closes and self._is_property(tag.name):
            return TagRole.PARAMETER
        return role

    def _is_property(self, name: str) -> bool:
        tool = self._tool
        return tool is not None and name in self._scope.tools.properties(tool)

    # the call's own tag

    def _head(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        tag = self._tags.at(text, pos, final=final)
        if tag is None or tag == "":
            return pos, NonCall.REFUSED if final or tag is None else MORE
        if not self._elements and tag_role(tag) is TagRole.PARAMETER:
            self._go(self._between)  # the name is lost; the parameters may tell
            return pos, MORE
        self._call_tag = tag.name
        self._name = tag.name if self._elements else name_in_tag(tag) or None
        known = self._name is None or self._scope.tools.find(self._name).tool is not None
        if not known and not self._scope.sure:
            return pos + len(tag.raw), NonCall.REFUSED
        if tag.empty:
            return pos + len(tag.raw), self._done()
        self._go(self._between)
        return pos + len(tag.raw), MORE

    # between parameters

    def _between(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        blank = _BLANK.match(text, pos)
        pos = blank.end() if blank else pos
        if pos == len(text):
            return pos, self._at_end() if final else MORE
        if text[pos] == "{" and not self._texts:
            self._body = JsonBody(self._scope)
            self._body.grow_as(self._name)
            self._go(self._in_json)
            return pos, MORE
        ender = self._scope.enders.match(text, pos, final=final)
        tag = self._tags.at(text, pos, final=final)
        if isinstance(tag, Tag):
            known = self._tag_between(tag, pos)
            if known is not None:
                return known
        if ender and (self._texts or self._name is not None):
            return self._complete(pos)
        if not final and (ender == "" or tag == ""):
            return pos, MORE
        return self._junk(pos, final=final and tag != "")

    def _tag_between(self, tag: Tag, pos: int) -> tuple[int, BodyOutcome] | None:
        end = pos + len(tag.raw)
        match self._role(tag):
            case TagRole.PARAMETER:
                self._begin_value(tag)
                return end, MORE
            case TagRole.NAME:
                self._begin_value(tag, key="")
                return end, MORE
            case TagRole.CALL_END:
                return self._complete(end)
            case TagRole.CALL if self._texts:
                return pos, self._done()
            case TagRole.PARAMETER_END | TagRole.SKIPPED:
                self._moved = True
                return end, MORE
            case _:
                return None

    def _junk(self, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        if not self._scope.sure and not self._texts:
            return pos, NonCall.REFUSED
        del final
        self._go(self._skipping)
        return pos, MORE

    def _skipping(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        """Run to the ender: the body is no call that could be read."""
        hit = self._scope.enders.search(text, pos, final=final)
        if hit is not None:
            return hit.start, self._rejected(Problem.PARSE_ERROR, "parameters expected") if hit.literal else MORE
        return len(text), self._rejected(Problem.PARSE_ERROR, "parameters expected") if final else MORE

    # a value

    def _begin_value(self, tag: Tag, key: str | None = None) -> None:
        self._key = (name_in_tag(tag) or tag.name) if key is None else key
        self._key_tag = next((name for name in PARAMETER_TAGS if tag.name.startswith(name)), tag.name)
        self._kind = _kind_of(tag)
        # Qwen3-Coder's `<parameter=k>` and elements have lines of their own; `name="k"` has its value right between the
        # tags: DeepSeek and MiniMax write edits there whose newlines at both ends count.
        # MiniMax M3 writes elements like that too, each after a token.
        self._is_laid_out = bool(tag.value) or (not name_in_tag(tag) and self._tags.first == "<")
        if tag.empty:
            self._texts.append(TextInTags(self._key, tag.attributes.get("value", ""), self._kind))
            self._last, self._moved = None, True
            return
        self._start_value(TextValue(self._tags, self._ends_value))

    @override
    def _open_text(self, value: TextValue) -> TextInTags:
        return TextInTags(self._key, value, self._kind, self._is_laid_out)

    @override
    def _end_value(self, value: TextValue, ending: Tag) -> int:
        """Store a value; of the tags that end it, only a parameter's own closer is consumed."""
        closes = ending.closes and (self._role(ending) is TagRole.PARAMETER_END or ending.name == self._key)
        if self._key:
            self._texts.append(self._open_text(value)._replace(is_escaped=ending.escaped))
            self._keys.add(self._key)
        else:
            self._name, self._last = value.text.strip(), None
        self._key_tag, self._last_tag = "", self._key_tag
        self._go(self._between)
        return len(ending.raw) if closes else 0

    @override
    def _reopen_value(self) -> None:
        self._texts.pop()
        self._key_tag = self._last_tag

    # the end of a value

    def _ends_value(self, tag: Tag, text: str, after: int, final: bool) -> bool | None:  # noqa: FBT001
        role = self._role(tag)
        if role is TagRole.PARAMETER_END:
            return self._closer_ends(text, after, final=final)
        if role is TagRole.CALL_END:
            return self._call_ends(text, after, final=final)
        if tag.closes:
            return tag.name == self._key and self._key_ends(text, after, final=final)
        return not tag.empty and self._opener_ends(tag, role)

    def _closer_ends(self, text: str, after: int, *, final: bool) -> bool | None:
        """Return whether a closer ends the value: before the rest of a call, if it closes no parameter inside."""
        nested = self._nested
        ends: bool | None = False
        if not nested.parameters:
            # A doubled closer is a slip (Qwen3-Coder); in a value that holds markup it may be data.
            doubled = () if nested.is_marked else (TagRole.PARAMETER_END,)
            roles = (TagRole.PARAMETER, TagRole.CALL_END, TagRole.CALL, TagRole.SKIPPED, *doubled)
            ends = self._followed(text, after, roles, final=final)
        elif not nested.calls and not nested.sibling:
            # The value names an opener that has no closer: the rest of the call is the end of the value.
            ends = self._rest_follows(text, after, final=final)
        if ends is False:
            nested.close_parameter()
        return ends

    @override
    def _given(self) -> AbstractSet[str]:
        return self._keys

    def _call_ends(self, text: str, after: int, *, final: bool) -> bool | None:
        """Return whether a call's end ends the value: its own closer is missing, and it holds no other markup."""
        ends = False if self._nested.is_marked else self._followed(text, after, (TagRole.CALL,), final=final)
        if ends is False:
            self._nested.close_call()
        return ends

    def _key_ends(self, text: str, after: int, *, final: bool) -> bool | None:
        """Return whether `</key>` ends the value: Claude closes `<parameter name="content">` so, before the next."""
        nested = self._nested
        ends = False if nested.keys or nested.is_open else self._rest_follows(text, after, final=final)
        if ends is False:
            nested.keys = max(0, nested.keys - 1)
        return ends

    def _opener_ends(self, tag: Tag, role: TagRole) -> bool:
        """Return whether an opener ends the value: a parameter of the tool, not given yet, at the start of a line.

        Qwen3-Coder forgets `</parameter>` before the next parameter. Inside other markup, and any other tag, is data:
        coding agents write files about such tags.
        """
        nested = self._nested
        is_new = role is TagRole.PARAMETER and self._is_new(tag)
        if is_new and not nested.is_marked and self._value is not None and self._value.at_line_start:
            return True
        if is_new and nested.closed_last and self._value is not None and self._value.is_after_tag:
            self._swallowed.add(name_in_tag(tag) or tag.name)
        if self._opens_value(tag):
            nested.open_parameter(sibling=is_new)
        elif role is TagRole.CALL or tag.name == "tool_call":
            nested.open_call()
        if tag.name == self._key:
            nested.keys += 1
        return False

    def _is_new(self, tag: Tag) -> bool:
        key = name_in_tag(tag) or tag.name
        return key not in self._keys and key != self._key and self._is_property(key)

    @override
    def _opens_value(self, tag: Tag) -> bool:
        key_tag = self._key_tag or self._last_tag
        alike = bool(key_tag) and tag.name.startswith(key_tag)
        return (
            not tag.closes and not tag.empty and (alike or (not self._elements and tag_role(tag) is TagRole.PARAMETER))
        )

    @override
    def _closes_value(self, tag: Tag) -> bool:
        key_tag = self._key_tag or self._last_tag
        alike = bool(key_tag) and tag.name.startswith(key_tag)
        return tag.closes and (alike or (not self._elements and tag_role(tag) is TagRole.PARAMETER_END))

    @override
    def _next_key(self, tag: Tag, text: str, after: int, *, final: bool) -> str | None:
        del text, after, final
        return name_in_tag(tag) or tag.name if self._opens_value(tag) or self._role(tag) is TagRole.PARAMETER else ""

    @override
    def _opens_call(self, tag: Tag) -> bool:
        return not tag.closes and (self._role(tag) is TagRole.CALL or self._is_element(tag))

    @override
    def _closes_call(self, tag: Tag) -> bool:
        return tag.closes and (self._role(tag) is TagRole.CALL_END or self._is_element(tag))

    def _is_element(self, tag: Tag) -> bool:
        return self._elements and tag.name in self._scope.tools.names

    @override
    def _goes_on(self, tag: Tag, *, or_next: bool) -> bool:
        role = self._role(tag)
        return role is TagRole.CALL_END or (or_next and role is TagRole.PARAMETER and self._is_new(tag))

    def _followed(self, text: str, after: int, roles: tuple[TagRole, ...], *, final: bool) -> bool | None:
        def accepts(tag: Tag) -> bool:
            return self._role(tag) in roles

        return followed(text, after, final=final, tags=self._tags, enders=self._scope.enders, accepts=accepts)

    # JSON where the parameters should be

    def _in_json(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        body = self._body
        if body is None:
            return pos, NonCall.REFUSED
        pos, over = body.feed(text, pos, final=final)
        if not over:
            return pos, MORE
        self._go(self._after_json)
        return pos, MORE

    def _after_json(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        blank = _BLANK.match(text, pos)
        at = blank.end() if blank else pos
        if at - pos > MAX_BLANKS:
            return pos, self._json_outcome()
        if at < len(text):
            tag = self._tags.at(text, at, final=final)
            if tag == "" and not final:
                return pos, MORE
            if isinstance(tag, Tag) and self._role(tag) is TagRole.CALL_END:
                return at + len(tag.raw), self._json_outcome()
        elif not final:
            return pos, MORE
        return pos, self._json_outcome()

    def _json_outcome(self) -> BodyOutcome:
        if self._body is None or self._body.problem() is not None:
            return self._cut_short()
        attempt = self._body.attempt(self._name, fixes=(Fix("json_in_tag"),), sure=self._scope.sure)
        return self._rejected(attempt.problem, attempt.detail) if attempt.problem is not None else (attempt,)

    # endings

    def _at_end(self) -> BodyOutcome:
        """All parameters are closed: complete only if our own stop sequence took the call's closer away."""
        stopped = any(stop.startswith("</") for stop in self._scope.stop)
        return self._done() if stopped else self._cut_short()

    @override
    def _cut_short(self) -> BodyOutcome:
        begun = bool(self._texts) or self._value is not None
        if not self._scope.sure and not begun:
            return NonCall.REFUSED
        return (Attempt(self._name, problem=Problem.TRUNCATED, detail="the call does not end"),)


def _kind_of(tag: Tag) -> TextKind:
    told = tag.attributes.get("string")
    if told is not None:
        return "string" if told.lower() == "true" else "json"
    told = tag.attributes.get("type")
    if told is None:
        return "by_schema"
    return "string" if told.lower() in _TEXT_TYPES else "json"


@dataclass(frozen=True)
class Tagged:
    """A kind of G3 body whose tags name their roles."""

    tags: TagLexer
    elements: bool = False

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start at a call's tag (or a parameter's, if the call's is lost)."""
        if text[pos] != self.tags.first:
            return False
        tag = self.tags.at(text, pos, final=final)
        if tag is None or tag == "":
            return None if tag == "" else False
        if self.elements:
            return not tag.closes and tag.name in scope.tools.names
        return tag_role(tag) in (TagRole.CALL, TagRole.PARAMETER)

    def new(self, scope: Scope) -> TagReader:
        """Make a reader for one call."""
        return TagReader(scope, self.tags, elements=self.elements)


XML: Final = Tagged(XmlTags())
ELEMENTS: Final = Tagged(XmlTags(), elements=True)
XTML: Final = Tagged(XtmlTags())

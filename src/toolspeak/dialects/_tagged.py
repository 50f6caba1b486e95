"""G3, arguments as tags: `<function=f><parameter=k>v</parameter></function>` and all its kin.

The names of call and parameter stand in an attribute, after `=`, or are the tag's own name. Values are raw text, typed
by the schema. A JSON object may stand where the parameters should.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from toolspeak.dialects._attempt import MORE, Mark, Outcome, Scope
from toolspeak.dialects._json_form import JsonBody
from toolspeak.dialects._states import States
from toolspeak.dialects._tags import Tag, XmlTags, XtmlTags
from toolspeak.dialects._text_value import TagLexer, TextValue, followed
from toolspeak.ir.complaint import Problem
from toolspeak.ir.fix import Fix
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.toolset.check import Attempt, TextArg, TextKind

CALL_TAGS: Final = ("function", "invoke", "call")
PARAMETER_TAGS: Final = ("parameter", "param", "value", "argument")
_NAME_ATTRIBUTES: Final = ("name", "tool", "key")
_TEXT_TYPES: Final = ("raw", "string", "str", "text")
_BLANK = re.compile(r"\s*")


class Role(Enum):
    """What a tag is to the call around it."""

    CALL = auto()
    CALL_END = auto()
    PARAMETER = auto()
    PARAMETER_END = auto()
    NAME = auto()
    SKIPPED = auto()
    OTHER = auto()


def name_of(tag: Tag) -> str:
    """Return the name that a tag carries in its value or an attribute."""
    return tag.value or next((tag.attributes[key] for key in _NAME_ATTRIBUTES if key in tag.attributes), "")


def role_of(tag: Tag) -> Role:
    """Tell the role of a tag by its name."""
    is_call = tag.name in CALL_TAGS or (tag.name == "tool_call" and (tag.closes or "name" in tag.attributes))
    if is_call:
        return Role.CALL_END if tag.closes else Role.CALL
    if tag.name.startswith(PARAMETER_TAGS) and tag.name != "parameters":
        return Role.PARAMETER_END if tag.closes else Role.PARAMETER
    if tag.name == "tool_name":
        return Role.OTHER if tag.closes else Role.NAME
    return Role.SKIPPED if tag.name == "parameters" else Role.OTHER


class TaggedForm(States):
    """Reads one call."""

    def __init__(self, scope: Scope, tags: TagLexer, *, elements: bool = False) -> None:
        """Start before the call's tag; with `elements`, its name is the tool's."""
        super().__init__(self._head)
        self._scope, self._tags, self._elements = scope, tags, elements
        self._name: str | None = None
        self._call_tag = ""
        self._texts: list[TextArg] = []
        self._keys: set[str] = set()
        self._value: TextValue | None = None
        self._key, self._key_tag = "", ""
        self._kind: TextKind = "by_schema"
        self._body: JsonBody | None = None

    def _role(self, tag: Tag) -> Role:
        if self._elements and tag.name == self._call_tag:
            return Role.CALL_END if tag.closes else Role.CALL
        if self._key_tag and tag.closes and tag.name.startswith(self._key_tag):
            return Role.PARAMETER_END
        if self._elements:
            return Role.PARAMETER if not tag.closes and self._is_property(tag.name) else Role.OTHER
        role = role_of(tag)
        if role is Role.OTHER and not tag.closes and self._is_property(tag.name):
            return Role.PARAMETER
        return role

    def _is_property(self, name: str) -> bool:
        tool = self._scope.tools.find(self._name).tool if self._name is not None else None
        return tool is not None and name in self._scope.tools.properties(tool)

    # the call's own tag

    def _head(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        tag = self._tags.at(text, pos, final=final)
        if tag is None or tag == "":
            return pos, Mark.REFUSED if final or tag is None else MORE
        if not self._elements and role_of(tag) is Role.PARAMETER:
            self._go(self._between)  # the name is lost; the parameters may tell
            return pos, MORE
        self._call_tag = tag.name
        self._name = tag.name if self._elements else name_of(tag) or None
        known = self._name is None or self._scope.tools.find(self._name).tool is not None
        if not known and not self._scope.sure:
            return pos + len(tag.raw), Mark.REFUSED
        if tag.empty:
            return pos + len(tag.raw), self._done()
        self._go(self._between)
        return pos + len(tag.raw), MORE

    # between parameters

    def _between(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        blank = _BLANK.match(text, pos)
        pos = blank.end() if blank else pos
        if pos == len(text):
            return pos, self._at_end() if final else MORE
        if text[pos] == "{" and not self._texts:
            self._body = JsonBody(self._scope)
            self._go(self._in_json)
            return pos, MORE
        ender = self._scope.enders.match(text, pos, final=final)
        tag = self._tags.at(text, pos, final=final)
        if isinstance(tag, Tag):
            known = self._tag_between(tag, pos)
            if known is not None:
                return known
        if ender and (self._texts or self._name is not None):
            return pos, self._done()
        if not final and (ender == "" or tag == ""):
            return pos, MORE
        return self._junk(pos, final=final and tag != "")

    def _tag_between(self, tag: Tag, pos: int) -> tuple[int, Outcome] | None:
        end = pos + len(tag.raw)
        match self._role(tag):
            case Role.PARAMETER:
                self._begin_value(tag)
                return end, MORE
            case Role.NAME:
                self._begin_value(tag, key="")
                return end, MORE
            case Role.CALL_END:
                return end, self._done()
            case Role.CALL if self._texts:
                return pos, self._done()
            case Role.PARAMETER_END | Role.SKIPPED:
                self._moved = True
                return end, MORE
            case _:
                return None

    def _junk(self, pos: int, *, final: bool) -> tuple[int, Outcome]:
        if not self._scope.sure and not self._texts:
            return pos, Mark.REFUSED
        del final
        self._go(self._skipping)
        return pos, MORE

    def _skipping(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        """Run to the ender: the body is no call that could be read."""
        hit = self._scope.enders.search(text, pos, final=final)
        if hit is not None:
            return hit.start, self._rejected(Problem.PARSE_ERROR, "parameters expected") if hit.literal else MORE
        return len(text), self._rejected(Problem.PARSE_ERROR, "parameters expected") if final else MORE

    # a value

    def _begin_value(self, tag: Tag, key: str | None = None) -> None:
        self._key = (name_of(tag) or tag.name) if key is None else key
        self._key_tag = next((name for name in PARAMETER_TAGS if tag.name.startswith(name)), tag.name)
        self._kind = _kind_of(tag)
        if tag.empty:
            self._texts.append(TextArg(self._key, tag.attributes.get("value", ""), self._kind))
            self._moved = True
            return
        self._value = TextValue(self._tags, self._ends_value)
        self._go(self._in_value)

    def _in_value(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        value = self._value
        if value is None:
            return pos, Mark.REFUSED
        pos, ending = value.feed(text, pos, final=final)
        if ending is None:
            return pos, self._cut_short() if final else MORE
        self._store(value.text, ending)
        consumed = len(ending.raw) if self._role(ending) is Role.PARAMETER_END else 0
        self._key_tag, self._value = "", None
        self._go(self._between)
        return pos + consumed, MORE

    def _store(self, text: str, ending: Tag) -> None:
        if ending.escaped:
            text = text.replace("\\/", "/")
        if self._key:
            self._texts.append(TextArg(self._key, text, self._kind))
            self._keys.add(self._key)
        else:
            self._name = text.strip()

    def _ends_value(self, tag: Tag, text: str, after: int, final: bool) -> bool | None:  # noqa: FBT001
        role = self._role(tag)
        if role is Role.PARAMETER_END:
            return self._followed(text, after, (Role.PARAMETER, Role.CALL_END, Role.CALL, Role.SKIPPED), final=final)
        if role is Role.CALL_END:
            return self._followed(text, after, (Role.CALL,), final=final)
        new_key = name_of(tag) or tag.name
        given = new_key in self._keys or new_key == self._key
        at_line = self._value is not None and self._value.at_line_start
        return role is Role.PARAMETER and at_line and not given and self._is_property(new_key)

    def _followed(self, text: str, after: int, roles: tuple[Role, ...], *, final: bool) -> bool | None:
        def accepts(tag: Tag) -> bool:
            return self._role(tag) in roles

        return followed(text, after, final=final, tags=self._tags, enders=self._scope.enders, accepts=accepts)

    # JSON where the parameters should be

    def _in_json(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        body = self._body
        if body is None:
            return pos, Mark.REFUSED
        pos, over = body.feed(text, pos, final=final)
        if not over:
            return pos, MORE
        self._go(self._after_json)
        return pos, MORE

    def _after_json(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        blank = _BLANK.match(text, pos)
        at = blank.end() if blank else pos
        if at - pos > MAX_BLANKS:
            return pos, self._json_outcome()
        if at < len(text):
            tag = self._tags.at(text, at, final=final)
            if tag == "" and not final:
                return pos, MORE
            if isinstance(tag, Tag) and self._role(tag) is Role.CALL_END:
                return at + len(tag.raw), self._json_outcome()
        elif not final:
            return pos, MORE
        return pos, self._json_outcome()

    def _json_outcome(self) -> Outcome:
        if self._body is None or self._body.problem() is not None:
            return self._cut_short()
        attempt = self._body.attempt(self._name, fixes=(Fix("json_in_tag"),), sure=self._scope.sure)
        return self._rejected(attempt.problem, attempt.detail) if attempt.problem is not None else (attempt,)

    # endings

    def _done(self) -> Outcome:
        return (Attempt(self._name, texts=tuple(self._texts), sure=self._scope.sure),)

    def _at_end(self) -> Outcome:
        """All parameters are closed: complete only if our own stop sequence took the call's closer away."""
        stopped = any(stop.startswith("</") for stop in self._scope.stop)
        return self._done() if stopped else self._cut_short()

    def _cut_short(self) -> Outcome:
        begun = bool(self._texts) or self._value is not None
        if not self._scope.sure and not begun:
            return Mark.REFUSED
        return (Attempt(self._name, problem=Problem.TRUNCATED, detail="the call does not end"),)

    def _rejected(self, problem: Problem, detail: str) -> Outcome:
        if not self._scope.sure:
            return Mark.TEXT
        return (Attempt(self._name, problem=problem, detail=detail),)


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
        return role_of(tag) in (Role.CALL, Role.PARAMETER)

    def new(self, scope: Scope) -> TaggedForm:
        """Make a reader for one call."""
        return TaggedForm(scope, self.tags, elements=self.elements)


XML: Final = Tagged(XmlTags())
ELEMENTS: Final = Tagged(XmlTags(), elements=True)
XTML: Final = Tagged(XtmlTags())

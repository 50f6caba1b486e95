"""G3, arguments as tags: `<function=f><parameter=k>v</parameter></function>` and its relatives.

The names of call and parameter are in an attribute, after `=`, or are the tag's own name. GLM and Hy3 write pairs
instead: `f<arg_key>k</arg_key><arg_value>v</arg_value>`. Values are raw text, typed by the schema. A JSON object may
replace the parameters.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from toolspeak.dialects.core.form import MORE, BodyOutcome, FormState, FormStates, NonCall, Scope
from toolspeak.dialects.core.json_form import JsonBody
from toolspeak.dialects.core.tags import Tag, TagLexer, TextValue, XmlTags, XtmlTags, followed
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.toolset.check import Attempt, TextArg, TextKind

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


def _value_state(
    value: TextValue, end: Callable[[TextValue, Tag], int], cut_short: Callable[[], BodyOutcome]
) -> FormState:
    """Return the state that reads a value up to the tag that ends it.

    `end` stores the value, goes to the next state, and returns how many characters of the tag are consumed. `cut_short`
    gives the outcome if the text ends inside the value.
    """

    def in_value(text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        pos, ending = value.feed(text, pos, final=final)
        if ending is None:
            return pos, cut_short() if final else MORE
        return pos + end(value, ending), MORE

    return in_value


class TagReader(FormStates):
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
        tool = self._scope.tools.find(self._name).tool if self._name is not None else None
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
                return end, self._done()
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
        if tag.empty:
            self._texts.append(TextArg(self._key, tag.attributes.get("value", ""), self._kind))
            self._moved = True
            return
        self._value = TextValue(self._tags, self._ends_value)
        self._go(_value_state(self._value, self._end_value, self._cut_short))

    def _end_value(self, value: TextValue, ending: Tag) -> int:
        """Store a value; of the tags that end it, only a parameter's own closer is consumed."""
        self._store(value.text, ending)
        consumed = len(ending.raw) if self._role(ending) is TagRole.PARAMETER_END else 0
        self._key_tag, self._value = "", None
        self._go(self._between)
        return consumed

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
        if role is TagRole.PARAMETER_END:
            return self._followed(
                text, after, (TagRole.PARAMETER, TagRole.CALL_END, TagRole.CALL, TagRole.SKIPPED), final=final
            )
        if role is TagRole.CALL_END:
            return self._followed(text, after, (TagRole.CALL,), final=final)
        # Qwen3-Coder forgets `</parameter>` before the next parameter. So a parameter of the tool that is not given yet
        # ends the value, at the start of a line. Any other tag is data: coding agents write files about such tags.
        new_key = name_in_tag(tag) or tag.name
        given = new_key in self._keys or new_key == self._key
        at_line = self._value is not None and self._value.at_line_start
        return role is TagRole.PARAMETER and at_line and not given and self._is_property(new_key)

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

    def _done(self) -> BodyOutcome:
        return (Attempt(self._name, texts=tuple(self._texts), sure=self._scope.sure),)

    def _at_end(self) -> BodyOutcome:
        """All parameters are closed: complete only if our own stop sequence took the call's closer away."""
        stopped = any(stop.startswith("</") for stop in self._scope.stop)
        return self._done() if stopped else self._cut_short()

    def _cut_short(self) -> BodyOutcome:
        begun = bool(self._texts) or self._value is not None
        if not self._scope.sure and not begun:
            return NonCall.REFUSED
        return (Attempt(self._name, problem=Problem.TRUNCATED, detail="the call does not end"),)

    def _rejected(self, problem: Problem, detail: str) -> BodyOutcome:
        if not self._scope.sure:
            return NonCall.TEXT
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
        return tag_role(tag) in (TagRole.CALL, TagRole.PARAMETER)

    def new(self, scope: Scope) -> TagReader:
        """Make a reader for one call."""
        return TagReader(scope, self.tags, elements=self.elements)


XML: Final = Tagged(XmlTags())
ELEMENTS: Final = Tagged(XmlTags(), elements=True)
XTML: Final = Tagged(XtmlTags())


# pairs

_PAIR_TAGS = XmlTags()
_NAME = re.compile(r"[^\s<{]*")
_KEY = re.compile(r"[^<]*")
_MAX_NAME, _MAX_KEY = 128, 256
_PAIR_BLANK = re.compile(r"(?:\s|\\n)*")  # some servers leave a literal \n between the tags
_SKIPPED: Final = ("tool_sep", "think")


def _extended(word: str, pattern: re.Pattern[str], most: int, text: str, pos: int) -> tuple[str, int]:
    """Return a word with what the pattern matches at `pos`, and where that ends.

    At most one character over the limit is taken, so that a word without an end is not collected.
    """
    found = pattern.match(text, pos)
    end = min(found.end() if found else pos, pos + most + 1 - len(word))
    return word + text[pos:end], end


class PairReader(FormStates):
    """Reads one call, from its name to the wrapper's closer."""

    def __init__(self, scope: Scope) -> None:
        """Start before the name."""
        super().__init__(self._in_name)
        self._scope = scope
        self._name = ""
        self._key = ""
        self._texts: list[TextArg] = []
        self._value: TextValue | None = None
        self._body: JsonBody | None = None

    @property
    def _known(self) -> bool:
        return self._scope.tools.find(self._name).tool is not None

    def _in_name(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        self._name, end = _extended(self._name, _NAME, _MAX_NAME, text, pos)
        if len(self._name) > _MAX_NAME:
            return end, NonCall.REFUSED
        if end == len(text):
            return end, self._cut_short() if final else MORE
        self._go(self._between)
        return end, MORE

    def _between(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        blank = _PAIR_BLANK.match(text, pos)
        pos = blank.end() if blank else pos
        if pos == len(text):
            return pos, self._cut_short() if final else MORE
        if text[pos] == "{" and self._known and not self._texts:
            self._body = JsonBody(self._scope)
            self._go(self._in_json)
            return pos, MORE
        ender = self._scope.enders.match(text, pos, final=final)
        tag = _PAIR_TAGS.at(text, pos, final=final)
        if isinstance(tag, Tag) and not ender:
            return self._tag_between(tag, pos)
        if ender and (self._texts or self._known):
            return pos, self._done()
        if not final and (ender == "" or tag == ""):
            return pos, MORE
        if final and tag != "" and text[pos] == "<" and (self._texts or self._known):
            return len(text), self._cut_short()
        return pos, NonCall.REFUSED

    def _tag_between(self, tag: Tag, pos: int) -> tuple[int, BodyOutcome]:
        end = pos + len(tag.raw)
        if tag.name == "arg_key" and not tag.closes:
            self._key = ""
            self._go(self._in_key)
            return end, MORE
        if tag.name == "arg_value" and not tag.closes and self._key:
            self._value = TextValue(_PAIR_TAGS, self._ends_value)
            self._go(_value_state(self._value, self._end_value, self._cut_short))
            return end, MORE
        if tag.name in ("arg_key", "arg_value", *_SKIPPED):
            self._moved = True
            return end, MORE
        return pos, NonCall.REFUSED

    def _in_key(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        """Read a key up to any tag: an orphan key must not swallow the next one."""
        self._key, end = _extended(self._key, _KEY, _MAX_KEY, text, pos)
        if len(self._key) > _MAX_KEY:
            return end, NonCall.REFUSED
        if end == len(text):
            return end, self._cut_short() if final else MORE
        self._key = self._key.strip()
        self._go(self._between)
        return end, MORE

    def _end_value(self, value: TextValue, ending: Tag) -> int:
        """Store a value to the byte: GLM writes newlines between its tags, but none around a value."""
        self._texts.append(TextArg(self._key, value.raw))
        self._key, self._value = "", None
        self._go(self._between)
        return len(ending.raw)

    def _ends_value(self, tag: Tag, text: str, after: int, final: bool) -> bool | None:  # noqa: FBT001
        if not tag.closes or tag.name != "arg_value":
            return False
        return followed(text, after, final=final, tags=_PAIR_TAGS, enders=self._scope.enders, accepts=_is_key)

    def _in_json(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        body = self._body
        if body is None:
            return pos, NonCall.REFUSED
        pos, over = body.feed(text, pos, final=final)
        if not over:
            return pos, MORE
        if body.problem() is not None:
            return pos, self._cut_short()
        return pos, (body.attempt(self._name, fixes=(Fix("json_after_name"),), sure=self._scope.sure),)

    def _done(self) -> BodyOutcome:
        return (Attempt(self._name, texts=tuple(self._texts), sure=self._scope.sure),)

    def _cut_short(self) -> BodyOutcome:
        if self._texts and self._value is None and any(stop.startswith("</") for stop in self._scope.stop):
            return self._done()
        if not self._scope.sure:
            return NonCall.REFUSED
        return (Attempt(self._name, problem=Problem.TRUNCATED, detail="the call does not end"),)


def _is_key(tag: Tag) -> bool:
    return tag.name == "arg_key" and not tag.closes


@dataclass(frozen=True)
class Pairs:
    """A kind of body that starts with the tool's name."""

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start at a letter or `_`."""
        del scope, final
        return text[pos].isalpha() or text[pos] == "_"

    def new(self, scope: Scope) -> PairReader:
        """Make a reader for one call."""
        return PairReader(scope)


PAIRS: Final = Pairs()

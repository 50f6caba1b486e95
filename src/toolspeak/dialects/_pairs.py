"""G3 as pairs: `name<arg_key>k</arg_key><arg_value>v</arg_value>…` (GLM, Hy3)."""

import re
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects._attempt import MORE, Mark, Outcome, Scope
from toolspeak.dialects._json_form import JsonBody
from toolspeak.dialects._states import States
from toolspeak.dialects._tags import Tag, XmlTags
from toolspeak.dialects._text_value import TextValue, followed
from toolspeak.ir.complaint import Problem
from toolspeak.ir.fix import Fix
from toolspeak.toolset.check import Attempt, TextArg

_TAGS = XmlTags()
_NAME = re.compile(r"[^\s<{]*")
_KEY = re.compile(r"[^<]*")
_MAX_NAME, _MAX_KEY = 128, 256
_BLANK = re.compile(r"(?:\s|\\n)*")  # some servers leave a literal \n between the tags
_SKIPPED: Final = ("tool_sep", "think")


class PairsForm(States):
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

    def _in_name(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        found = _NAME.match(text, pos)
        end = min(found.end() if found else pos, pos + _MAX_NAME + 1 - len(self._name))
        self._name += text[pos:end]
        if len(self._name) > _MAX_NAME:
            return end, Mark.REFUSED
        if end == len(text):
            return end, self._cut_short() if final else MORE
        self._go(self._between)
        return end, MORE

    def _between(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        blank = _BLANK.match(text, pos)
        pos = blank.end() if blank else pos
        if pos == len(text):
            return pos, self._cut_short() if final else MORE
        if text[pos] == "{" and self._known and not self._texts:
            self._body = JsonBody(self._scope)
            self._go(self._in_json)
            return pos, MORE
        ender = self._scope.enders.match(text, pos, final=final)
        tag = _TAGS.at(text, pos, final=final)
        if isinstance(tag, Tag) and not ender:
            return self._tag_between(tag, pos)
        if ender and (self._texts or self._known):
            return pos, self._done()
        if not final and (ender == "" or tag == ""):
            return pos, MORE
        if final and tag != "" and text[pos] == "<" and (self._texts or self._known):
            return len(text), self._cut_short()
        return pos, Mark.REFUSED

    def _tag_between(self, tag: Tag, pos: int) -> tuple[int, Outcome]:
        end = pos + len(tag.raw)
        if tag.name == "arg_key" and not tag.closes:
            self._key = ""
            self._go(self._in_key)
            return end, MORE
        if tag.name == "arg_value" and not tag.closes and self._key:
            self._value = TextValue(_TAGS, self._ends_value)
            self._go(self._in_value)
            return end, MORE
        if tag.name in ("arg_key", "arg_value", *_SKIPPED):
            self._moved = True
            return end, MORE
        return pos, Mark.REFUSED

    def _in_key(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        """Read a key up to any tag: an orphan key must not swallow the next one."""
        found = _KEY.match(text, pos)
        end = min(found.end() if found else pos, pos + _MAX_KEY + 1 - len(self._key))
        self._key += text[pos:end]
        if len(self._key) > _MAX_KEY:
            return end, Mark.REFUSED
        if end == len(text):
            return end, self._cut_short() if final else MORE
        self._key = self._key.strip()
        self._go(self._between)
        return end, MORE

    def _in_value(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        value = self._value
        if value is None:
            return pos, Mark.REFUSED
        pos, ending = value.feed(text, pos, final=final)
        if ending is None:
            return pos, self._cut_short() if final else MORE
        self._texts.append(TextArg(self._key, value.raw))
        self._key, self._value = "", None
        self._go(self._between)
        return pos + len(ending.raw), MORE

    def _ends_value(self, tag: Tag, text: str, after: int, final: bool) -> bool | None:  # noqa: FBT001
        if not tag.closes or tag.name != "arg_value":
            return False
        return followed(text, after, final=final, tags=_TAGS, enders=self._scope.enders, accepts=_is_key)

    def _in_json(self, text: str, pos: int, final: bool) -> tuple[int, Outcome]:  # noqa: FBT001
        body = self._body
        if body is None:
            return pos, Mark.REFUSED
        pos, over = body.feed(text, pos, final=final)
        if not over:
            return pos, MORE
        if body.problem() is not None:
            return pos, self._cut_short()
        return pos, (body.attempt(self._name, fixes=(Fix("json_after_name"),), sure=self._scope.sure),)

    def _done(self) -> Outcome:
        return (Attempt(self._name, texts=tuple(self._texts), sure=self._scope.sure),)

    def _cut_short(self) -> Outcome:
        if self._texts and self._value is None and any(stop.startswith("</") for stop in self._scope.stop):
            return self._done()
        if not self._scope.sure:
            return Mark.REFUSED
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

    def new(self, scope: Scope) -> PairsForm:
        """Make a reader for one call."""
        return PairsForm(scope)


PAIRS: Final = Pairs()

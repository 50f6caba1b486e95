"""G3 in pairs: `f<arg_key>k</arg_key><arg_value>v</arg_value>`, as GLM and Hy3 write it.

Values are raw text, typed by the schema. A JSON object may replace the pairs.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.dialects.core.json_form import JsonBody
from toolspeak.dialects.core.settle import TaggedCall, TextInTags
from toolspeak.dialects.core.tags import Tag, TextValue, XmlTags, followed
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.toolset.check import Attempt

_PAIR_TAGS = XmlTags()
_NAME = re.compile(r"[^\s<{]*")
_KEY = re.compile(r"[^<]*")
_MAX_NAME, _MAX_KEY = 128, 256
_PAIR_BLANK = re.compile(r"(?:\s|\\n)*")  # some servers leave a literal \n between the tags
_FENCE = re.compile(r"```[\w ]{0,24}\n")
_FENCE_CUT = re.compile(r"`{1,2}\Z|```[\w ]{0,24}\Z")
_SKIPPED: Final = ("tool_sep", "think")


def _extended(word: str, pattern: re.Pattern[str], most: int, text: str, pos: int) -> tuple[str, int]:
    """Return a word with what the pattern matches at `pos`, and where that ends.

    At most one character over the limit is taken, so that a word without an end is not collected.
    """
    found = pattern.match(text, pos)
    end = min(found.end() if found else pos, pos + most + 1 - len(word))
    return word + text[pos:end], end


class PairReader(TaggedCall):
    """Reads one call, from its name to the wrapper's closer."""

    def __init__(self, scope: Scope) -> None:
        """Start before the name."""
        super().__init__(self._in_name, scope, _PAIR_TAGS)
        self._name = ""
        self._key = ""
        self._body: JsonBody | None = None

    def _in_name(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        name, end = _extended(self._name or "", _NAME, _MAX_NAME, text, pos)
        self._name = name
        if len(name) > _MAX_NAME:
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
        if text[pos] == "`" and self._tool is not None and not self._texts and not self.is_fenced:
            return self._fence(text, pos, final=final)
        if text[pos] == "{" and self._tool is not None and not self._texts:
            self._body = JsonBody(self._scope)
            self._body.grow_as(self._name)
            self._go(self._in_json)
            return pos, MORE
        ender = self._scope.enders.match(text, pos, final=final)
        tag = _PAIR_TAGS.at(text, pos, final=final)
        if isinstance(tag, Tag) and not ender:
            return self._tag_between(tag, pos)
        if ender and (self._texts or self._tool is not None):
            return self._complete(pos)
        if not final and (ender == "" or tag == ""):
            return pos, MORE
        if final and tag != "" and text[pos] == "<" and (self._texts or self._tool is not None):
            return len(text), self._cut_short()
        return pos, NonCall.REFUSED

    def _fence(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Pass a fence before the JSON; its end is left to the wrapper."""
        found = _FENCE.match(text, pos)
        if found is not None:
            self.is_fenced = self._moved = True
            return found.end(), MORE
        return pos, MORE if not final and _FENCE_CUT.match(text, pos) else NonCall.REFUSED

    def _split_name(self) -> None:
        """Split a name that has swallowed `<arg_key>` and the key after it, if a tool has such a key (GLM 4.7)."""
        tools, glued = self._scope.tools, self._name or ""
        heads = [(name, glued[len(name) :]) for name in tools.names if glued.startswith(name)]
        found = [(name, key) for name, key in heads if key in tools.properties(name)]
        if len(found) == 1 and self._tool is None:
            self._name, self._key = found[0]

    def _tag_between(self, tag: Tag, pos: int) -> tuple[int, BodyOutcome]:
        end = pos + len(tag.raw)
        if tag.name == "arg_key" and not tag.closes:
            self._key = ""
            self._go(self._in_key)
            return end, MORE
        if tag.name == "arg_value" and not tag.closes and self._key:
            self._start_value(TextValue(_PAIR_TAGS, self._ends_value))
            return end, MORE
        if tag.name in ("arg_key", "arg_value", *_SKIPPED):
            if tag.name == "arg_key" and not self._texts and not self._key:
                self._split_name()
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

    @override
    def _open_text(self, value: TextValue) -> TextInTags:
        return TextInTags(self._key, value)

    @override
    def _end_value(self, value: TextValue, ending: Tag) -> int:
        """Store a value to the byte: GLM writes newlines between its tags, but none around a value."""
        self._texts.append(self._open_text(value))
        self._key = ""
        self._go(self._between)
        return len(ending.raw) if self._closes_value(ending) else 0

    @override
    def _reopen_value(self) -> None:
        self._key = self._texts.pop().key

    def _ends_value(self, tag: Tag, text: str, after: int, final: bool) -> bool | None:  # noqa: FBT001
        nested = self._nested
        if self._closes_value(tag):
            return self._closer_ends(text, after, final=final)
        if tag.name == "tool_call" and tag.closes:
            nested.close_call()
        elif tag.name == "tool_call":
            nested.open_call()
        elif self._opens_value(tag):
            nested.open_parameter(sibling=False)
        elif _is_key(tag):
            return self._key_inside(tag, text, after, final=final)
        return False

    def _key_inside(self, tag: Tag, text: str, after: int, *, final: bool) -> bool | None:
        """Keep a key that the value holds: if the call lacks it, it may be markup."""
        key = self._next_key(tag, text, after, final=final)
        if key is None:
            return None
        self._swallowed.add(key)
        self._nested.sibling = self._nested.sibling or not self._nested.calls
        return False

    @override
    def _next_key(self, tag: Tag, text: str, after: int, *, final: bool) -> str | None:
        if not _is_key(tag):
            return ""
        key, end = _extended("", _KEY, _MAX_KEY, text, after)
        return None if end == len(text) and not final else key.strip()

    @override
    def _given(self) -> AbstractSet[str]:
        return {text.key for text in self._texts}

    def _closer_ends(self, text: str, after: int, *, final: bool) -> bool | None:
        """Return whether a closer ends the value: before the next key or the end, if it closes no value inside."""
        nested = self._nested
        ends: bool | None = False
        if not nested.parameters or not (nested.calls or nested.sibling):
            ends = followed(text, after, final=final, tags=_PAIR_TAGS, enders=self._scope.enders, accepts=_is_key)
        if ends is False:
            nested.close_parameter()
        return ends

    @override
    def _opens_value(self, tag: Tag) -> bool:
        return tag.name == "arg_value" and not tag.closes

    @override
    def _closes_value(self, tag: Tag) -> bool:
        return tag.name == "arg_value" and tag.closes

    @override
    def _opens_call(self, tag: Tag) -> bool:
        del tag
        return False  # a wrapper has one call

    @override
    def _closes_call(self, tag: Tag) -> bool:
        del tag
        return False

    @override
    def _goes_on(self, tag: Tag, *, or_next: bool) -> bool:
        return or_next and _is_key(tag)

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

    @override
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

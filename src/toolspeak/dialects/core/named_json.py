"""A name and then its arguments as JSON.

G2, the name in a header before the first brace: `[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}`. Each dialect says how
to read its header.

G7, the name on a line with a label: `Action: get_weather`, then `Action Input: {"city": "Oslo"}`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.dialects.core.json_form import JsonBody
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.toolset.check import Attempt
from toolspeak.toolset.toolset import ToolSet

MAX_HEADER = 256
_CLOSING_FENCE = re.compile(r"\s{0,64}```")
_CLOSING_FENCE_CUT = re.compile(r"\s{0,64}`{0,2}\Z")


class Header(NamedTuple):
    """The contents of a header; a name of None is to be inferred from the arguments."""

    name: str | None
    native_id: str = ""


ReadHeader: TypeAlias = Callable[[str, ToolSet], Header | None]


def by_pattern(pattern: str) -> ReadHeader:
    """Read a header by a pattern with the groups `name` and perhaps `id`. No repeats inside repeats in it."""
    compiled = re.compile(pattern)

    def read(header: str, tools: ToolSet) -> Header | None:
        del tools
        found = compiled.fullmatch(header)
        if found is None:
            return None
        groups = found.groupdict()
        return Header(groups["name"].strip() or None, (groups.get("id") or "").strip())

    return read


class NamedJsonReader:
    """Reads one header and one JSON value."""

    def __init__(self, scope: Scope, readers: tuple[ReadHeader, ...]) -> None:
        """Start before the header, which the first reader that can shall read."""
        self._scope, self._readers = scope, readers
        self._header_text = ""
        self._header: Header | None = None
        self._fenced = self._over = False
        self._body = JsonBody(scope)

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the end of the JSON value."""
        if self._header is None:
            pos, outcome = self._feed_header(text, pos, final=final)
            if self._header is None or outcome is not MORE:
                return pos, outcome
        if not self._over:
            pos, self._over = self._body.feed(text, pos, final=final)
        if not self._over or not self._fenced:
            return pos, self._outcome(self._header) if self._over else MORE
        return self._close_fence(text, pos, self._header, final=final)

    def _close_fence(self, text: str, pos: int, header: Header, *, final: bool) -> tuple[int, BodyOutcome]:
        """Take the fence around the JSON with it; its opening is part of the header."""
        closing = _CLOSING_FENCE.match(text, pos)
        if closing is not None:
            return closing.end(), self._outcome(header)
        may_come = not final and _CLOSING_FENCE_CUT.match(text, pos) is not None
        return pos, MORE if may_come else self._outcome(header)

    def _read(self, header: str) -> Header | None:
        found = (read(header, self._scope.tools) for read in self._readers)
        return next((header for header in found if header is not None), None)

    def _feed_header(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        brace = text.find("{", pos)
        ender = self._scope.enders.search(text, pos, final=final)
        stop = len(text) if brace < 0 else brace
        if ender is not None and ender.start < stop:
            stop = ender.start
            if ender.literal:
                return self._without_json(text, pos, stop)
        before = len(self._header_text)
        self._header_text += text[pos:stop]
        end = _header_end(self._header_text)
        if end is not None:
            return pos + end - before, NonCall.REFUSED
        if stop == brace:
            self._header = self._read(self._header_text)
            self._fenced = "```" in self._header_text
            if self._header is not None:
                self._body.grow_as(self._header.name, self._header.native_id)
            return stop, MORE if self._header is not None else NonCall.REFUSED
        return stop, self._cut_short() if final else MORE

    def _without_json(self, text: str, pos: int, stop: int) -> tuple[int, BodyOutcome]:
        """Take a name that an explicit ender follows for a call without arguments."""
        header = self._read(self._header_text + text[pos:stop])
        if header is None or header.name is None or self._scope.tools.find(header.name).tool is None:
            return stop, NonCall.REFUSED
        fixes = (Fix("no_arguments"),)
        return stop, (Attempt(header.name, {}, native_id=header.native_id, fixes=fixes, sure=self._scope.sure),)

    def _cut_short(self) -> BodyOutcome:
        words = self._header_text.split()
        if not self._scope.sure or len(words) > len(("function", "name", "{")):
            return NonCall.REFUSED
        header = self._read(self._header_text)
        return (Attempt(header.name if header else None, problem=Problem.TRUNCATED, detail="no arguments follow"),)

    def _outcome(self, header: Header) -> BodyOutcome:
        attempt = self._body.attempt(header.name, native_id=header.native_id, sure=self._scope.sure)
        return NonCall.TEXT if attempt.problem is not None and not self._scope.sure else (attempt,)


def _header_end(header: str) -> int | None:
    """Return where a header has surely become prose; None while it may be one."""
    gap = header.find("\n\n")
    ends = [end for end in (gap + len("\n\n") if gap >= 0 else 0, MAX_HEADER if len(header) > MAX_HEADER else 0) if end]
    return min(ends, default=None)


@dataclass(frozen=True)
class NamedJson:
    """A kind of G2 body: how its header reads, and which first characters it may have."""

    readers: tuple[ReadHeader, ...]
    first: str = ""
    """Characters besides letters, digits and `_` that a header may start with."""

    def __or__(self, other: "NamedJson") -> "NamedJson":
        """Read both kinds of header."""
        return NamedJson((*self.readers, *other.readers), self.first + other.first)

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start at anything that may begin a name."""
        del scope, final
        return text[pos].isalnum() or text[pos] == "_" or text[pos] in self.first

    def new(self, scope: Scope) -> NamedJsonReader:
        """Make a reader for one call."""
        return NamedJsonReader(scope, self.readers)


_BARE_NAME = re.compile(r"[\w.\-]{1,128}")
_BARE_HEADER = by_pattern(r"(?P<name>[\w.\-]{1,128})\s*")


@dataclass(frozen=True)
class BareNamedJson:
    """The name of a tool glued to its arguments, with no opener: `get_weather{"city": "Oslo"}`."""

    between: str = r"\s{0,2}"

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start only at the name of a tool that a brace follows."""
        name = _BARE_NAME.match(text, pos)
        if name is None:
            return False
        if name.end() == len(text):
            return False if final else None
        if scope.tools.find(name.group()).tool is None:
            return False
        between = re.compile(self.between).match(text, name.end())
        end = name.end() if between is None else between.end()
        if end == len(text):
            return False if final else None
        return text[end] == "{"

    def new(self, scope: Scope) -> NamedJsonReader:
        """Make a reader for one call."""
        return NamedJsonReader(scope, (_BARE_HEADER,))


_BLANK = re.compile(r"[ \t]*")
_MAX_NAME = 160
_MAX_HEAD = 512


class LabelledReader:
    """Reads the name on the label's line, the label of the arguments, and the arguments."""

    def __init__(self, scope: Scope, arguments_label: str) -> None:
        """Start after the first label."""
        self._scope, self._label = scope, arguments_label
        self._name: str | None = None
        self._head = ""
        self._body: JsonBody | None = None
        self._plain: list[str] | None = None

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the end of the arguments."""
        if self._body is not None:
            return self._in_json(text, pos, self._body, final=final)
        if self._plain is not None:
            return self._in_plain(text, pos, self._plain, final=final)
        return self._in_head(text, pos, final=final)

    def _in_head(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Hold the short head whole: name, newline, label, and what the arguments start with."""
        head = text[pos:]
        name, newline, rest = head.partition("\n")
        unknown = bool(newline) and self._scope.tools.find(name.strip()).tool is None
        if unknown or len(name) > _MAX_NAME or len(rest) - len(rest.lstrip()) > _MAX_HEAD:
            return pos, NonCall.REFUSED
        label = rest.lstrip()
        half = len(label) < len(self._label) and self._label.startswith(label)
        if not newline or (half and not final) or (half and label):
            return pos, self._cut(name) if final else MORE
        self._name = name.strip()
        if not label.startswith(self._label):
            return pos + len(name), self._without_arguments()
        begin = pos + len(head) - len(label) + len(self._label)
        blank = _BLANK.match(text, begin)
        begin = blank.end() if blank else begin
        if begin == len(text) and not final:
            self._name = None
            return pos, MORE
        return self._begin(text, begin, final=final)

    def _begin(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        if text.startswith("{", pos):
            self._body = JsonBody(self._scope)
        else:
            self._plain = []
        return self.feed(text, pos, final=final)

    def _in_json(self, text: str, pos: int, body: JsonBody, *, final: bool) -> tuple[int, BodyOutcome]:
        pos, over = body.feed(text, pos, final=final)
        return pos, (body.attempt(self._name),) if over else MORE

    def _in_plain(self, text: str, pos: int, plain: list[str], *, final: bool) -> tuple[int, BodyOutcome]:
        """Read a line of text that is no JSON: the one argument of a tool that takes just one string."""
        end = text.find("\n", pos)
        plain.append(text[pos : len(text) if end < 0 else end])
        if end < 0 and not final:
            return len(text), MORE
        return len(text) if end < 0 else end, self._one_string("".join(plain).strip(), ended=end >= 0)

    def _one_string(self, value: str, *, ended: bool) -> BodyOutcome:
        tool = self._scope.tools.find(self._name or "").tool
        keys = self._scope.tools.ordered(tool) if tool is not None else ()
        if value in ("", "None", "{}"):
            return self._without_arguments()
        if len(keys) == 1 and ended:
            return (Attempt(self._name, {keys[0]: value}, fixes=(Fix("plain_input"),)),)
        problem = Problem.PARSE_ERROR if ended else Problem.TRUNCATED
        return (Attempt(self._name, problem=problem, detail="the arguments are not a JSON object"),)

    def _without_arguments(self) -> BodyOutcome:
        return (Attempt(self._name, {}, fixes=(Fix("no_arguments"),)),)

    def _cut(self, name: str) -> BodyOutcome:
        if self._scope.tools.find(name.strip()).tool is None:
            return NonCall.REFUSED
        return (Attempt(name.strip(), problem=Problem.TRUNCATED, detail="no arguments follow"),)


@dataclass(frozen=True)
class Labelled:
    """The kind of body that follows a label with the tool's name."""

    arguments_label: str

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start anywhere: only a tool's name is taken for one."""
        del text, pos, scope, final
        return True

    def new(self, scope: Scope) -> LabelledReader:
        """Make a reader for one call."""
        return LabelledReader(scope, self.arguments_label)

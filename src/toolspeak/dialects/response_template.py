r"""Makes a dialect of a `response_template`: the JSON in a model's `tokenizer_config.json` that says how it writes.

    {"start_anchor": "<|im_start|>assistant\n", "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>"},
        "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "repeats": true, "content": "json",
                       "transform": {"type": "function", "function": "{content}"}},
        "content": {"close": "<|im_end|>"}}}

transformers (5.13), vLLM (0.32) and SGLang (0.5.23) read these. Here the template becomes a grammar of ours, so that
streaming, gates, complaints and limits are those of every dialect, and nothing of the template is executed
(`core/patterns.py`). A form of ours that reads what the template describes is preferred, because it also knows how
models err in that form. A template that cannot be translated is refused with the field and the reason.

`template_export.py` writes templates of our dialects.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import THINK_TAGS, Label, MarkupGrammar, OpenerPosition, ReasoningMarks, Wrapper
from toolspeak.dialects.core.json_form import ARGUMENT_KEYS, JSON, NAME_KEYS
from toolspeak.dialects.core.key_value_form import KEY_VALUE, QUOTES
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.named_json import NamedJson, by_pattern
from toolspeak.dialects.core.pair_form import PAIRS
from toolspeak.dialects.core.patterns import (
    BLANKS,
    CharRun,
    Sequence,
    UnreadPattern,
    alternatives,
    example_text,
    expression,
    longest,
    without_blanks,
)
from toolspeak.dialects.core.tag_form import XML, Tagged
from toolspeak.dialects.core.tags import Tag
from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump, parse

CALLS: Final = "tool_calls"
REASONING: Final = ("reasoning_content", "reasoning", "thinking")
_KEYS: Final = {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"}
_FIELD_KEYS: Final = {
    "open",
    "open_pattern",
    "close",
    "close_pattern",
    "content",
    "content_args",
    "repeats",
    "join",
} | {
    "optional",
    "transform",
    "transform_each",
}
_WORD: Final = re.compile(r"\{(\w+(?:\.\w++)*)\}")
_MAX_LITERAL: Final = 256
_NAME, _KEY, _VALUE = "probe_tool", "probe_key", "probe value"
_PROBE: Final = Tool(_NAME, parameters={"type": "object", "properties": {_KEY: {"type": "string"}}})
_ANYWHERE: Final = OpenerPosition.ANYWHERE
_KNOWN_CLOSERS: Final = frozenset(closer for marks in THINK_TAGS for closer in marks.closers)


def template_dialect(template: Json, name: str) -> Dialect:
    """Return the dialect of that name which reads what a template describes. Raises BadField."""
    fields = _fields(template)
    if CALLS not in fields:
        raise BadField("fields", f"has no {CALLS}: the template describes no call, so there is nothing to read")
    for field in fields:
        if field not in (CALLS, "content", *REASONING):
            raise BadField(f"fields.{field}", f"is none of {', '.join((CALLS, 'content', *REASONING))}")
    frame = _frame(template, fields)
    shape = _shape(fields[CALLS])
    calls = Anchors(fields, CALLS)
    unread = ""
    for wrappers in _candidates(calls, shape):
        dialect = Dialect(name, MarkupGrammar(tuple(wrappers)) | RECOVERY | frame)
        unread = next((call for call in _calls(calls, shape) if not _reads(dialect, call, shape)), "")
        if not unread:
            return dialect
    raise BadField(f"fields.{CALLS}", f"describes calls like {unread!r}, a form that toolspeak does not read")


# ---------------------------------------------------------------- fields


def _fields(template: Json) -> dict[str, JsonObject]:
    if not isinstance(template, dict):
        raise BadField("response_template", "is not an object")
    if unknown := template.keys() - _KEYS:
        raise BadField(min(unknown), "is not a key of a response_template of version 1")
    if template.get("version", 1) != 1:
        raise BadField("version", f"{template['version']!r} is not 1, the version that toolspeak reads")
    fields = template.get("fields")
    if not isinstance(fields, dict) or not fields:
        raise BadField("fields", "is missing, or not an object")
    found: dict[str, JsonObject] = {}
    for name, field in fields.items():
        if not isinstance(field, dict):
            raise BadField(f"fields.{name}", "is not an object")
        if unknown := field.keys() - _FIELD_KEYS:
            raise BadField(f"fields.{name}.{min(unknown)}", "is not a key of a field")
        found[name] = field
    return found


class Anchors:
    """The marks at which one field opens and closes, as sequences without blanks around them."""

    def __init__(self, fields: Mapping[str, JsonObject], name: str, field: JsonObject | None = None) -> None:
        """Read them. Raises BadField."""
        self.path = f"fields.{name}" if field is None else name
        self._field = fields[name] if field is None else field
        self.opens = self._anchors("open")
        self.closes = self._anchors("close")

    def _anchors(self, key: str) -> tuple[Sequence, ...]:
        literals, pattern = self._field.get(key), self._field.get(f"{key}_pattern")
        if literals is not None and pattern is not None:
            raise BadField(f"{self.path}.{key}", f"is given together with {key}_pattern")
        if pattern is not None:
            return self._translated(f"{key}_pattern", pattern)
        listed = literals if isinstance(literals, list) else [] if literals is None else [literals]
        for literal in listed:
            if not isinstance(literal, str) or not literal or len(literal) > _MAX_LITERAL:
                raise BadField(f"{self.path}.{key}", f"is not made of texts of 1 to {_MAX_LITERAL} characters")
        return tuple(dict.fromkeys(without_blanks((literal,)) for literal in listed if isinstance(literal, str)))

    def _translated(self, key: str, pattern: Json) -> tuple[Sequence, ...]:
        return tuple(dict.fromkeys(map(without_blanks, self.pattern(key, pattern))))

    def pattern(self, key: str, pattern: Json) -> tuple[Sequence, ...]:
        """Read one pattern of the field."""
        try:
            return alternatives(pattern if isinstance(pattern, str) else "")
        except UnreadPattern as error:
            raise BadField(f"{self.path}.{key}", f"{error}; only literals, \\s*, a|b and named runs are") from None

    def literals(self, key: Literal["open", "close"]) -> tuple[str, ...]:
        """Return the anchors of a field whose marks are literals; an empty one, as a lookahead is, is left out."""
        found: list[str] = []
        for sequence in self.opens if key == "open" else self.closes:
            if any(not isinstance(piece, str) for piece in sequence):
                raise BadField(f"{self.path}.{key}_pattern", "has more than a literal between its blanks")
            found.extend(piece for piece in sequence if isinstance(piece, str) and piece)
        return tuple(found)


def _frame(template: Json, fields: Mapping[str, JsonObject]) -> MarkupGrammar:
    """Return the reasoning marks, the labels and the ends of the message."""
    reasoning: list[ReasoningMarks] = []
    for name in REASONING:
        if name in fields:
            anchors = Anchors(fields, name)
            closers = anchors.literals("close")
            if not closers:
                raise BadField(f"fields.{name}", "has no close: reasoning would hide all that follows it")
            openers = anchors.literals("open")
            if word := next(filter(str.isalnum, openers), ""):
                raise BadField(f"fields.{name}.open", f"is {word!r}, a word that any text may have")
            if not openers and not {*closers} <= _KNOWN_CLOSERS:
                # The prompt opens it, as the fact `starts_in_reasoning` says; then only known closers are looked for.
                raise BadField(f"fields.{name}", f"has no literal that opens it, and closes with {closers[0]!r}")
            reasoning.extend(_marks(opener, closers) for opener in openers)
    if "content" not in fields:
        return MarkupGrammar(reasoning=tuple(reasoning))
    anchors = Anchors(fields, "content")
    labels = anchors.literals("open")
    if labels and isinstance(template, dict):
        # No field takes the text outside of marks: the start of a message may be repeated there (`<|start|>assistant`).
        start = Anchors({}, "", {"open": template.get("start_anchor")} if "start_anchor" in template else {})
        labels = (*labels, *start.literals("open"))
    return MarkupGrammar(
        closers=anchors.literals("close"),
        reasoning=tuple(reasoning),
        labels=tuple(Label(label, _ANYWHERE) for label in labels),
    )


def _marks(opener: str, closers: tuple[str, ...]) -> ReasoningMarks:
    """Return marks; those that prose has too count only at the start of a line, as everywhere."""
    where = next((marks.where for marks in THINK_TAGS if marks.opener == opener), _ANYWHERE)
    return ReasoningMarks(opener, closers, where=where)


# ---------------------------------------------------------------- calls


@dataclass(frozen=True)
class CallLayout:
    """Where the name and the arguments of a call are, and how the arguments are written."""

    name: tuple[str, ...]
    """The path of the name in the JSON; empty if the opening mark has it."""
    arguments: tuple[str, ...]
    group: str = ""
    """The group of the opening mark that has the name."""
    is_list: bool = False
    quotes: tuple[str, str] | None = None
    """Strings between such tokens, and keys without quotes."""
    tags: tuple[Sequence, ...] = ()
    """The alternatives of one argument, if arguments are tags."""

    def body(self) -> str:
        """Write the arguments of the example, or the whole of its JSON."""
        if self.tags:
            return example_text(self.tags[0], {"key": _KEY, "value": _VALUE})
        if self.quotes:
            return f"{{{_KEY}:{self.quotes[0]}{_VALUE}{self.quotes[1]}}}"
        arguments: JsonObject = {_KEY: _VALUE}
        if self.group:
            return dump(arguments)
        call: JsonObject = {self.name[-1]: _NAME, self.arguments[-1]: arguments}
        for key in reversed(self.name[:-1]):
            call = {key: call}
        return dump([call, call] if self.is_list else call)


def _shape(field: JsonObject) -> CallLayout:
    """Read how a call is made of what its marks surround. Raises BadField."""
    path = f"fields.{CALLS}"
    content, args = field.get("content", "text"), field.get("content_args", {})
    if content not in ("json", "xml-inline"):
        raise BadField(f"{path}.content", f"{content!r} is not json or xml-inline: no other content is a call")
    if not isinstance(args, dict):
        raise BadField(f"{path}.content_args", "is not an object")
    each = field.get("transform_each", False) is True
    name, arguments = _paths(field.get("transform"), path)
    is_captured = not each and name[0] != "content"
    if arguments[0] != "content" and not each:
        raise BadField(f"{path}.transform", "takes the arguments from elsewhere than the content")
    inner = (name, arguments) if each else (name[1:], arguments[1:])
    if content == "xml-inline":
        if not is_captured or inner[1]:
            raise BadField(f"{path}.transform", "takes the name out of the tags of arguments")
        return CallLayout((), (), name[0], tags=_tags(field, args))
    quotes = _quotes(args, path)
    if is_captured:
        if inner[1]:
            raise BadField(f"{path}.transform", "takes the name from the mark, and the arguments from inside the JSON")
        return CallLayout((), (), name[0], quotes=quotes)
    named, given = inner if inner[0] else (("name",), ("arguments",))
    if named[-1] not in NAME_KEYS or not given or given[-1] not in ARGUMENT_KEYS or named[:-1] != given[:-1]:
        raise BadField(
            f"{path}.transform",
            f"has the keys {'.'.join(named)!r} and {'.'.join(given)!r}: toolspeak reads the name from "
            f"{', '.join(NAME_KEYS)}, and the arguments from {', '.join(ARGUMENT_KEYS)}",
        )
    if quotes:
        raise BadField(f"{path}.content_args.string_delims", "is read only where the opening mark has the name")
    return CallLayout(named, given, is_list=each)


def _paths(transform: Json, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return where a transform takes the name and the arguments from."""
    function = transform.get("function") if isinstance(transform, dict) else None
    if function == "{content}":
        return ("content",), ("content",)
    if isinstance(function, dict):
        found = [_WORD.fullmatch(each) for key in ("name", "arguments") if isinstance(each := function.get(key), str)]
        words = [tuple(one.group(1).split(".")) for one in found if one]
        if len(words) == len(("name", "arguments")):
            return words[0], words[1]
    raise BadField(
        f"{path}.transform", 'is not {"type": "function", "function": …} with a name and arguments, or "{content}"'
    )


def _quotes(args: JsonObject, path: str) -> tuple[str, str] | None:
    delims = args.get("string_delims")
    if delims is None and not args.get("unquoted_keys"):
        return None
    pairs = [(quote, quote) for quote in QUOTES]
    if isinstance(delims, list) and len(delims) == 1 and isinstance(delims[0], list):
        found = next((pair for pair in pairs if list(pair) == delims[0]), None)
        if found is not None and args.get("unquoted_keys"):
            return found
    known = ", ".join(QUOTES)
    raise BadField(f"{path}.content_args", f"has other string_delims than one of {known}, with unquoted_keys")


def _tags(field: JsonObject, args: JsonObject) -> tuple[Sequence, ...]:
    anchors, key = Anchors({CALLS: field}, CALLS), "content_args.tag_pattern"
    found = anchors.pattern(key, args.get("tag_pattern"))
    groups = [[piece.group for piece in one if isinstance(piece, CharRun) and piece.group] for one in found]
    if any(group != ["key", "value"] for group in groups):
        raise BadField(f"{anchors.path}.{key}", "is not a tag with a group key, and then a group value")
    return tuple(map(without_blanks, found))


class _Head(NamedTuple):
    """The opening mark of a call: the literal that opens it, and what follows up to the arguments."""

    opener: str
    rest: Sequence


def _heads(calls: Anchors) -> list[_Head]:
    heads: list[_Head] = []
    for sequence in calls.opens:
        first = sequence[0] if sequence else ""
        if not isinstance(first, str) or not first:
            raise BadField(f"{calls.path}.open_pattern", "does not begin with a literal")
        if first.strip().isalnum():
            raise BadField(f"{calls.path}.open", f"begins with {first!r}, a word that any text may have")
        heads.append(_Head(first, sequence[1:]))
    if not heads:
        raise BadField(calls.path, "has no open: text without a mark is no call")
    return heads


def _closers(calls: Anchors) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the marks that end a call, and those that may be before them (`</function>` before `</tool_call>`)."""
    last: list[str] = []
    before: list[str] = []
    for sequence in calls.closes:
        literals = [piece for piece in sequence if isinstance(piece, str) and piece]
        if any(isinstance(piece, CharRun) and not piece.is_blank for piece in sequence):
            raise BadField(f"{calls.path}.close_pattern", "has more than literals and blanks")
        last.extend(literals[-1:])
        before.extend(literals[:-1])
    return tuple(dict.fromkeys(last)), tuple(dict.fromkeys(before))


def _candidates(calls: Anchors, shape: CallLayout) -> Iterator[list[Wrapper]]:
    """Yield grammars that may read such calls; those that know most about models' errors first."""
    heads, (closers, ends) = _heads(calls), _closers(calls)
    openers = tuple(dict.fromkeys(head.opener for head in heads))
    if openers[0].startswith("{"):
        yield []  # bare JSON, which the recovery of every dialect reads, at the start of a message
        return
    if shape.tags:
        known = Wrapper(openers, closers, (JSON, XML, PAIRS))
        yield [known]
        yield [replace(known, forms=(XML,), keep_opener=True)]
        tags = _TemplateTags(heads, (*ends, *closers), shape)
        yield [Wrapper(openers, closers, (Tagged(tags),), keep_opener=True)]
    elif shape.quotes:
        yield [Wrapper(tuple(opener.removesuffix("call:") for opener in openers), closers, (KEY_VALUE,))]
    elif shape.group:
        forms = NamedJson(
            tuple(by_pattern(expression((BLANKS, *_with_name(head.rest, shape), BLANKS))) for head in heads)
        )
        yield [Wrapper(openers, closers, (forms,), single=True)]
    else:
        if any(isinstance(piece, CharRun) and not piece.is_blank for head in heads for piece in head.rest):
            raise BadField(f"{calls.path}.open_pattern", "has a run of characters that no transform uses")
        marks = (piece for head in heads for piece in (head.opener, *head.rest) if isinstance(piece, str))
        yield [Wrapper(tuple(dict.fromkeys(marks)), closers, (JSON, XML, PAIRS))]


def _with_name(rest: Sequence, shape: CallLayout) -> Sequence:
    """Call the group that has the name `name`, and no other."""
    return tuple(
        replace(piece, group="name" if piece.group == shape.group else "") if isinstance(piece, CharRun) else piece
        for piece in rest
    )


def _split(tag: Sequence) -> tuple[Sequence, Sequence]:
    """Return what is before the value, and the one literal after it; empty if there are more than that."""
    at = next(index for index, piece in enumerate(tag) if isinstance(piece, CharRun) and piece.group == "value")
    before, after = without_blanks(tag[:at]), without_blanks(tag[at + 1 :])
    is_literal = len(after) == 1 and isinstance(after[0], str) and isinstance(before[-1], str)
    return (before, after) if is_literal else ((), ())


class _TemplateTags:
    """Finds the tags of a template; the form of tags sees them as `<function=f>`, `<parameter=k>` and their ends."""

    def __init__(self, heads: list[_Head], ends: tuple[str, ...], shape: CallLayout) -> None:
        """Translate the marks. Raises BadField."""
        path = f"fields.{CALLS}.content_args.tag_pattern"
        befores, afters = zip(*(_split(tag) for tag in shape.tags), strict=True)
        if len({*afters}) != 1 or not all(before and isinstance(before[0], str) for before in befores):
            raise BadField(path, "is not a literal, the key, a literal, the value and the same literal at each end")
        rows = [
            *(((head.opener, *_with_name(head.rest, shape)), partial(_named, "function", "name")) for head in heads),
            *((before, partial(_named, "parameter", "key")) for before in befores),
            (afters[0], partial(_closing, "parameter")),
            *(((end,), partial(_closing, "function")) for end in ends),
        ]
        self._tags = [(str(sequence[0]), re.compile(expression(sequence)), tag) for sequence, tag in rows]
        self._longest = 1 + max(longest(sequence) for sequence, _ in rows)
        self.first: Final = self._tags[0][0][0]
        if any(literal[0] != self.first for literal, _, _ in self._tags):
            raise BadField(path, "begins with another character than the marks of a call")

    def at(self, text: str, pos: int, *, final: bool) -> Tag | Literal[""] | None:
        """Return the tag at `pos`, `""` to wait for more, None if there is no tag."""
        rest = text[pos : pos + self._longest]
        for literal, pattern, tag in self._tags:
            found = pattern.match(text, pos)
            if found is not None:
                return tag(found)
            # The tags are tried in their order also where a later one matches, so that a cut changes nothing.
            may_come = literal.startswith(rest) or (rest.startswith(literal) and pattern.groups)
            if may_come and not final and len(rest) < self._longest:
                return ""
        return None


def _named(name: str, group: str, found: re.Match[str]) -> Tag:
    return Tag(name, found.group(), value=found.group(group).strip())


def _closing(name: str, found: re.Match[str]) -> Tag:
    return Tag(name, found.group(), closes=True)


# ---------------------------------------------------------------- the proof


def _calls(calls: Anchors, shape: CallLayout) -> Iterator[str]:
    """Write a call as the template describes it, with each of its marks."""
    opens = [example_text(one, {shape.group: _NAME} if shape.group else {}) for one in calls.opens]
    closes = [example_text(one, {}) for one in calls.closes] or [""]
    yield from (opener + shape.body() + closes[0] for opener in opens)
    yield from (opens[0] + shape.body() + closer for closer in closes[1:])


def _reads(dialect: Dialect, call: str, shape: CallLayout) -> bool:
    """Return whether a dialect reads a call twice after a text."""
    is_bare = call.startswith("{")
    # In the middle of a line no recovery counts: what is read here is read by the template's own marks.
    text = call if is_bare else f"Probe: {call}\n{call}"
    turn = dialect.read(text, [_PROBE])
    wanted = 1 if is_bare else 4 if shape.is_list else 2
    read = [(one.name, parse(one.arguments)) for one in turn.calls]
    return read == [(_NAME, {_KEY: _VALUE})] * wanted and turn.text.strip() in ("", "Probe:")

r"""Finds markers and hidden characters in untrusted text, and breaks them (SAFE-2).

    <tool_call>      → <\tool_call>          in text: a backslash after the first character,
    </tool_call>     → </\tool_call>         or after the slash, because our own readers forgive `<\/`
    ```tool_call     → ```t\ool_call         the fence stays a fence, but an ordinary one
    "<tool_call>"    → "\u003ctool_call>"    in JSON: an escape, so that the value stays the same

Patterns match where a marker begins, so markers inside markers are broken too. No marker contains a backslash, so
breaking one never creates another: one pass is enough. Each pattern looks ahead a bounded distance: time is linear.

A pattern is applied to one window of text at a time. One call of `re` holds the interpreter lock until it is done: 8 MB
of `<` take ten seconds, in which no other thread, and so no other client of a gateway, would be served.

Hidden characters can make a text read differently for a model than for people:

- Always removed: Unicode tags (U+E0000 to U+E007F), which spell ASCII invisibly, and the bidi controls, which reorder
  the text on screen. The price: flags of regions (England, Wales) become black flags.
- Zero-width characters join letters in Persian, Hindi and emoji. They are removed only where both neighbours are ASCII,
  one of the few other characters that markers are made of, or the end of the text: there they join nothing, but can
  split a marker. A run of hidden characters has the visible neighbours of the whole run.
- In JSON both kinds become escapes: the value stays the same.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, NamedTuple

from toolspeak.dialects.core.grammar import MarkupGrammar, OpenerPosition
from toolspeak.dialects.core.lookup import result_closers
from toolspeak.dialects.core.special_tokens import (
    CALL_LITERALS,
    CALL_TAGS,
    FENCES,
    LINE_WORDS,
    SHARED_TAGS,
    SPECIAL_TOKENS,
    WORD_TAGS,
)

MARKER_CHARACTERS: Final = "｜‖▁✿"
"""The characters in markers of any dialect that are not ASCII."""

_ALWAYS = "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
_ZERO_WIDTH = (
    "\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0100-\U000e01ef"
)
_TAKEN = re.compile(f"[{_ALWAYS}]")
_RUN = re.compile(f"[{_ALWAYS}{_ZERO_WIDTH}]+")


class ChangedText(NamedTuple):
    """A text, and in how many places it was changed."""

    text: str
    places: int


def without_hidden(text: str) -> ChangedText:
    """Take hidden characters out."""
    return _changed(text, lambda hidden: hidden[:0])


def hidden_escaped(json: str) -> ChangedText:
    """Write hidden characters in JSON's strings as escapes."""
    return _changed(json, _escaped)


def _changed(text: str, shown: Callable[[str], str]) -> ChangedText:
    places = 0

    def run(found: re.Match[str]) -> str:
        nonlocal places
        was = found.group()
        joins = not (_is_plain(text, found.start() - 1) and _is_plain(text, found.end()))
        now = _TAKEN.sub(lambda one: shown(one.group()), was) if joins else shown(was)
        places += now != was
        return now

    return ChangedText(_RUN.sub(run, text), places) if not text.isascii() or "\0" in text else ChangedText(text, 0)


def _is_plain(text: str, at: int) -> bool:
    return not 0 <= at < len(text) or text[at].isascii() or text[at] in MARKER_CHARACTERS


def _escaped(hidden: str) -> str:
    units = hidden.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


_NAMESPACE: Final = r"(?:[a-z_][\w\-]{0,40}:)?"
_SHAPES: Final = (
    f"(?i:/?(?={_NAMESPACE}(?:{'|'.join(CALL_TAGS)})(?![\\w.\\-])))",
    f"(?i:/?(?={_NAMESPACE}invoke(?:>|\\s{{1,4}}\\w{{1,20}}\\s?=)))",
    r'(?=[|｜]/?["\w▁:.\-]{1,64}[|｜]>)',  # <|im_start|>
    r"(?=[|｜]tool (?:calls?|outputs?|sep)(?: begin| end)?[|｜]>)",  # DeepSeek's tokens, retyped
    r"/?(?=\s?[|｜‖]{1,2}\s?DSML)",
    r"(?i:(?=<[^\s:<>]{4,64}:(?:call|result|end)\b))",  # keyed, whatever the key
)
"""What follows `<`."""
_TAG: Final = re.compile(r"(?<!<)</?([A-Za-z_][\w.\-]*)")
_LINE: Final = r"(?<![^\n])[^\S\n]*+"
_WINDOW: Final = 16_384
_LOOKAHEAD: Final = 1_024
_MOST_PIECES: Final = 4_096


@dataclass(frozen=True)
class ForbiddenMarkers:
    """The markers of one dialect, and those that are never let through."""

    literals: frozenset[str] = frozenset()
    """Anywhere; the case of ASCII letters does not matter, as for the readers."""
    tags: frozenset[str] = frozenset()
    """Names of the tags that this dialect writes."""
    lines: frozenset[str] = frozenset()
    """At the start of a line, in this case."""
    fences: frozenset[str] = frozenset()
    """Info strings."""

    def with_literals(self, *literals: str) -> "ForbiddenMarkers":
        """Break these too."""
        return replace(self, literals=self.literals.union(literals))

    def with_tags(self, tags: Iterable[str]) -> "ForbiddenMarkers":
        """Break these too."""
        return replace(self, tags=self.tags.union(tags))

    def break_in_text(self, text: str) -> ChangedText:
        """Break every marker in a text, after what is hidden was taken out."""
        text, places = without_hidden(text)
        everywhere, at_lines = _everywhere()
        for anywhere, lines in ((everywhere, at_lines), (self._anywhere, self._at_lines)):
            text, more = _replaced(text, _openings_in(anywhere, text), _apart)
            text, also = _replaced(text, _lines_in(lines, text), _apart)
            places += more + also
        return ChangedText(text, places)

    def escape_in_json(self, json: str) -> ChangedText:
        """Break every marker in the strings of a JSON text, by escapes."""
        json, places = hidden_escaped(json)
        for pattern in (_everywhere()[0], self._anywhere):
            json, more = _replaced(json, _openings_in(pattern, json), _escape)
            places += more
        return ChangedText(json, places)

    def count(self, text: str) -> int:
        """Count the places where markers begin that are whole."""
        patterns = (*_everywhere(), self._anywhere, self._at_lines)
        return len({found.end() for pattern in patterns for found in pattern.finditer(text)})

    @cached_property
    def _anywhere(self) -> re.Pattern[str]:
        return _openings(self.literals, _own_shapes(self.tags))

    @cached_property
    def _at_lines(self) -> re.Pattern[str]:
        return _lines(self.lines, self.fences)


def escaped_json(json: str) -> str:
    """Break the markers of all dialects in the strings of a JSON text, their tags too."""
    return _ALL.escape_in_json(json).text


def broken(marker: str) -> str:
    """Write a marker so that it is none."""
    at = 2 if marker.startswith("</") else 1
    return f"{marker[:at]}\\{marker[at:]}"


def tag_names_in(written: str) -> frozenset[str]:
    """Name the tags in what a dialect has written itself."""
    return frozenset(_TAG.findall(written))


def forbidden_markers(grammar: MarkupGrammar) -> ForbiddenMarkers:
    """Take the markers out of a grammar."""
    wrappers = [wrapper for wrapper in grammar.wrappers if not wrapper.fence]
    placed = [(opener, w.where) for w in wrappers for opener in w.openers if w.sure or _is_markup(opener)]
    placed += [(mark.opener, mark.where) for mark in grammar.reasoning if mark.opener[1:-1] not in WORD_TAGS]
    placed += [(label.literal, label.where) for label in grammar.labels]
    placed += [(special.literal, special.where) for special in grammar.specials]
    placed += [(literal, OpenerPosition.ANYWHERE) for literal in _closers(grammar)]
    placed += [(line, OpenerPosition.LINE) for line in grammar.result_lines]
    fences = {info for wrapper in grammar.wrappers if wrapper.fence for info in wrapper.openers}
    fences |= {line.strip("`") for line, _ in placed if line.startswith("```")}
    return ForbiddenMarkers(
        frozenset(_bracketed(literal) for literal, where in placed if _counts_anywhere(literal, where)),
        lines=frozenset(literal for literal, where in placed if _counts_at_lines(literal, where)),
        fences=frozenset(fences),
    )


def _is_markup(opener: str) -> bool:
    """Return whether an opener that leaves doubt is broken wherever it is: a word is not, nor `Vec<Tool>`."""
    return not opener[0].isalnum() and opener[1:-1] not in WORD_TAGS


def _closers(grammar: MarkupGrammar) -> Iterator[str]:
    """Yield what ends something, and what begins a result; brackets and ticks alone are anybody's."""
    found = [closer for wrapper in grammar.wrappers for closer in wrapper.closers]
    found += [closer for mark in grammar.reasoning for closer in mark.closers]
    found += [stop for mark in grammar.reasoning for stop in mark.stops if not stop.startswith("\n")]
    found += [closer.rstrip() for result in grammar.results for closer in result_closers(result)]
    for literal in (*grammar.closers, *grammar.results, *found):
        if any(char.isalpha() for char in literal):
            yield literal


def _counts_anywhere(literal: str, where: OpenerPosition) -> bool:
    return literal[0] in "<[]✿" or (where is OpenerPosition.ANYWHERE and not literal.startswith("`"))


def _counts_at_lines(literal: str, where: OpenerPosition) -> bool:
    return where is OpenerPosition.LINE and literal[0] not in "<[]✿`"


def _bracketed(literal: str) -> str:
    """Drop the words before a token: `function<｜tool_sep｜>` is broken where the token is."""
    return literal[literal.find("<") :] if literal[0].isalnum() and "<" in literal else literal


# patterns: what begins a marker, with the rest of it ahead


@cache
def _everywhere() -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = "|".join(WORD_TAGS)
    types = f"(?i:(?<![A-Za-z0-9_:]<)(?={_NAMESPACE}(?:{words})>)|/(?={_NAMESPACE}(?:{words})>))"
    return _openings(CALL_LITERALS, (*_SHAPES, types), _tokens()), _lines(LINE_WORDS, FENCES)


def _tokens() -> list[str]:
    return [token for tokens in SPECIAL_TOKENS.values() for token in tokens]


def _own_shapes(tags: Iterable[str]) -> Iterator[str]:
    """Break the tags that the dialect writes wherever its reader would take them, with the blanks that it forgives."""
    names = "|".join(map(re.escape, sorted(tags)))
    if names:
        yield f"(?i:(?={_NAMESPACE}(?:{names})(?![\\w.\\-])))"
        yield f"(?i:(?=\\s{{1,4}}{_NAMESPACE}(?:{names})(?:=|\\s{{1,4}}\\w{{1,20}}\\s?=)))"
        yield f"(?i:/(?=\\s{{0,4}}{_NAMESPACE}(?:{names})(?![\\w.\\-])))"


def _openings(literals: Iterable[str], shapes: Iterable[str], exact: Iterable[str] = ()) -> re.Pattern[str]:
    """Compile: the first character, which stays literal, for speed, then the slash of a closer and what tells.

    Shapes continue after `<`. Words and the `exact` literals keep their case.
    """
    literals = frozenset(literals)
    words = {literal for literal in literals if literal[0].isalnum()}
    by_first: dict[str, list[str]] = {"<": list(shapes)}
    for pool, flag in ((literals - words, "i"), (words.union(exact), "")):
        for first, rests in _by_head(pool).items():
            ahead = f"(?{flag}:{first[1:]}(?={_branches(rests)}))"
            by_first.setdefault(first[0], []).append(ahead)
    starts = [f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in sorted(by_first.items()) if rests]
    return re.compile("|".join(starts) or r"(?!)", re.ASCII)


def _by_head(literals: Iterable[str]) -> dict[str, set[str]]:
    """Sort literals by what stays before the backslash."""
    rests: dict[str, set[str]] = {}
    for literal in literals:
        head = "</" if literal.startswith("</") else literal[0]
        rests.setdefault(head, set()).add(literal[len(head) :])
    return rests


def _branches(texts: Iterable[str]) -> str:
    """Write texts as a tree, so that a place is decided by its next character; the shortest text of a branch tells."""
    by_first: dict[str, set[str]] = {}
    for text in texts:
        if not text:
            return ""
        by_first.setdefault(text[0], set()).add(text[1:])
    branches = [re.escape(first) + _branches(rests) for first, rests in sorted(by_first.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _lines(words: Iterable[str], infos: Iterable[str]) -> re.Pattern[str]:
    """Compile what counts only at the start of a line; a word that ends in a letter counts only before JSON."""
    branches = [
        f"{re.escape(word[0])}(?={re.escape(word[1:])}{_before_json(word)})" for word in sorted(words) if len(word) > 1
    ]
    for info in sorted(infos):
        spaced = r"[^\S\n]+".join(map(re.escape, info[1:].split(" ")))
        branches.append(f"(?:`{{3,}}+|~{{3,}}+)[^\\S\\n]*+(?i:{re.escape(info[0])}(?={spaced}(?![\\w\\-])))")
    return re.compile(f"{_LINE}(?:{'|'.join(branches)})" if branches else r"(?!)")


def _before_json(word: str) -> str:
    return r"\s*+[\[{`]" if word[-1].isalnum() else ""


def _apart(marker: str) -> str:
    return f"{marker}\\"


def _escape(marker: str) -> str:
    return f"\\u{ord(marker[0]):04x}{marker[1:]}"


# applying them, a window at a time


def _openings_in(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern of `_openings`; none of them looks further than `_LOOKAHEAD` characters."""
    after = 0
    for start in range(0, len(text), _WINDOW):
        end = start + _WINDOW
        for found in pattern.finditer(text, max(start, after), end + _LOOKAHEAD):
            if found.start() >= end:
                break
            after = found.end()
            yield found


def _lines_in(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern of `_lines`, which can only begin where a line does."""
    start = 0
    while start >= 0:
        if found := pattern.match(text, start):
            yield found
        start = text.find("\n", found.end() if found else start) + 1 or -1


def _replaced(text: str, found: Iterator[re.Match[str]], change: Callable[[str], str]) -> ChangedText:
    """Return the text with every match changed, and how many there were.

    Pieces are joined now and then: a million small strings at one time would leave the process's memory in tatters.
    """
    done, pieces = list[str](), list[str]()
    places = end = 0
    for match in found:
        pieces += (text[end : match.start()], change(match.group()))
        end = match.end()
        places += 1
        if len(pieces) >= _MOST_PIECES:
            done.append("".join(pieces))
            pieces.clear()
    return ChangedText("".join((*done, *pieces, text[end:])), places) if places else ChangedText(text, 0)


_ALL: Final = ForbiddenMarkers(tags=frozenset((*WORD_TAGS, *SHARED_TAGS)))

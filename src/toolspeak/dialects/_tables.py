"""A grammar compiled for scanning: which literal, where, does what."""

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache, reduce
from typing import NamedTuple, TypeAlias

from toolspeak.dialects._attempt import FormKind
from toolspeak.dialects._grammar import Grammar, Label, Reasoning, Special, Where, Wrapper
from toolspeak.dialects._named_json import NamedJson
from toolspeak.dialects._quotation import QUOTED_MARKUP
from toolspeak.text.scan import Markers, folded


class Sign(Enum):
    """Literals that need no data."""

    CLOSER = auto()
    RESULT = auto()


class FenceLine(Enum):
    """What a line that is a Markdown fence does."""

    ORDINARY = auto()
    WHOLE = auto()
    """It may be around the whole reply."""
    CLOSES = auto()
    """It closes the one around the whole reply."""


Action: TypeAlias = Wrapper | Reasoning | Label | Special | Sign | FenceLine


class Found(NamedTuple):
    """A literal and what it does; an empty literal means: wait for more text."""

    literal: str
    action: Action | None


class Table:
    """Literals of one kind of place. Words keep their case; markup in brackets is read in any case."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        """Compile."""
        words = {literal for literal in actions if literal[0].isalnum()}
        self._words = Markers(words)
        self._markup = Markers(actions.keys() - words, ignore_case=True)
        self._actions = {self._key(literal): action for literal, action in actions.items()}

    def at(self, text: str, pos: int, *, final: bool) -> Found | None:
        """Return what stands at `pos`."""
        markers = self._words if text[pos].isalnum() else self._markup
        literal = markers.match(text, pos, final=final)
        return None if literal is None else Found(literal, self._actions.get(literal))

    def action(self, literal: str) -> Action | None:
        """Return what a literal does, as it was found."""
        return self._actions.get(literal)

    def _key(self, literal: str) -> str:
        return literal if literal[0].isalnum() else folded(literal)


class Tables:
    """All of a grammar's literals."""

    def __init__(self, grammar: Grammar) -> None:
        """Compile; wrappers that share an opener become one."""
        self.wrappers = _merged(grammar.wrappers)
        self.start = Table(_actions(grammar, self.wrappers, Where.START))
        self.line = Table(_actions(grammar, self.wrappers, Where.LINE))
        anywhere = _actions(grammar, self.wrappers, Where.ANYWHERE)
        self.anywhere = Table(anywhere)
        self.points = Markers((*anywhere, *QUOTED_MARKUP, "\n", "`"), ignore_case=True)
        self.fences = {info: wrapper for wrapper in grammar.wrappers if wrapper.fence for info in wrapper.openers}
        self.result_fences = frozenset(line.lstrip("`") for line in grammar.result_lines if line.startswith("```"))
        self.bare_start = _bare(grammar, Where.START)
        self.bare_line = _bare(grammar, Where.LINE)
        self.whole_fences = grammar.whole_fences
        self._anywhere = anywhere
        self._in_reasoning: dict[Reasoning, ReasoningTable] = {}

    def in_reasoning(self, mark: Reasoning) -> "ReasoningTable":
        """Return what to look for inside one kind of reasoning; a model uses one, so the others are not compiled."""
        if mark not in self._in_reasoning:
            self._in_reasoning[mark] = _reasoning_table(mark, self._anywhere)
        return self._in_reasoning[mark]


class ReasoningTable(NamedTuple):
    """What to look for inside one kind of reasoning."""

    points: Markers
    ends: Markers
    closers: frozenset[str]
    stops: frozenset[str]
    openers: dict[str, Wrapper]


@lru_cache(maxsize=256)
def tables_of(grammar: Grammar) -> Tables:
    """Compile once for all readers of a grammar."""
    return Tables(grammar)


def _bare(grammar: Grammar, where: Where) -> tuple[Wrapper, ...]:
    return tuple(wrapper for wrapper in grammar.wrappers if not wrapper.openers and wrapper.where is where)


def _merged(wrappers: tuple[Wrapper, ...]) -> dict[str, Wrapper]:
    merged: dict[str, Wrapper] = {}
    for wrapper in wrappers:
        for opener in () if wrapper.fence else wrapper.openers:
            known = merged.get(opener)
            merged[opener] = wrapper if known is None else _both(known, wrapper)
    return merged


def _both(one: Wrapper, other: Wrapper) -> Wrapper:
    return replace(
        one,
        openers=tuple(dict.fromkeys(one.openers + other.openers)),
        closers=tuple(dict.fromkeys(one.closers + other.closers)),
        forms=_forms(one.forms + other.forms),
        where=max(one.where, other.where),
    )


def _forms(forms: tuple[FormKind, ...]) -> tuple[FormKind, ...]:
    """Join headers of several dialects into one form: only the whole header tells which one it is."""
    named = [form for form in dict.fromkeys(forms) if isinstance(form, NamedJson)]
    others = tuple(form for form in dict.fromkeys(forms) if not isinstance(form, NamedJson))
    return (*others, reduce(lambda one, other: one | other, named)) if named else others


def _actions(grammar: Grammar, wrappers: Mapping[str, Wrapper], where: Where) -> dict[str, Action]:
    actions: dict[str, Action] = {}
    if where is Where.ANYWHERE:
        closers = (*grammar.closers, *(c for w in wrappers.values() for c in w.closers), *_closers(grammar))
        actions |= dict.fromkeys(filter(_is_markup, closers), Sign.CLOSER)
        actions |= dict.fromkeys(grammar.results, Sign.RESULT)
    elif where is Where.LINE:
        lines = (line for line in grammar.result_lines if not line.startswith("```"))  # those are result_fences
        actions |= dict.fromkeys(lines, Sign.RESULT)
    actions |= {mark.opener: mark for mark in grammar.reasoning if mark.where is where}
    actions |= {label.literal: label for label in grammar.labels if label.where is where}
    actions |= {special.literal: special for special in grammar.specials if special.where is where}
    actions |= {opener: wrapper for opener, wrapper in wrappers.items() if wrapper.where is where}
    return actions


def _is_markup(closer: str) -> bool:
    """Tell a closer that means something alone from a bracket or a fence, which any text may have."""
    return any(char.isalpha() for char in closer)


def _closers(grammar: Grammar) -> tuple[str, ...]:
    """Return the closers of reasoning: alone, they are debris, since the prompt's template has opened it."""
    return tuple(closer for mark in grammar.reasoning for closer in mark.closers)


def _reasoning_table(mark: Reasoning, anywhere: Mapping[str, Action]) -> ReasoningTable:
    openers = {
        folded(literal): action
        for literal, action in anywhere.items()
        if isinstance(action, Wrapper) and literal not in mark.stops
    }
    points = Markers((*mark.closers, *mark.stops, *openers), ignore_case=True)
    ends = Markers((*mark.closers, *mark.stops), ignore_case=True)
    closers, stops = frozenset(map(folded, mark.closers)), frozenset(map(folded, mark.stops))
    return ReasoningTable(points, ends, closers, stops, openers)


def result_closers(opener: str) -> tuple[str, ...]:
    """Return what ends a tool result that began so; one without a closer ends with its line."""
    if opener.startswith("<<"):
        return (f"{opener.partition(':')[0]}:end>>",)
    if opener.startswith("<") and opener.endswith("|>") and "begin" in opener:
        return (opener.replace("begin", "end"),)
    if opener.startswith(("<|", "<start_")):
        return (opener.replace("start", "end"), f"<{opener[2:-1]}|>", "\n")
    if opener[0] in "<[":
        return (f"{opener[0]}/{opener[1:]}",)
    return ("\n",)

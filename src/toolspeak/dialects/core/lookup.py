"""Looks markers up: a grammar compiled for scanning, and the markers that count only at a beginning.

`MarkerTables` answers which literal does what, anywhere in the text. `Beginnings` answers the same for the start of the
message, the start of a line and the place after a call, where closing tags and fences count too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property, lru_cache, reduce
from typing import Final, NamedTuple, TypeAlias

from toolspeak.dialects.core.form import BodyForm, Scope
from toolspeak.dialects.core.grammar import Label, MarkupGrammar, OpenerPosition, ReasoningMarks, Special, Wrapper
from toolspeak.dialects.core.named_json import NamedJson
from toolspeak.dialects.core.quotation import QUOTED_MARKUP, WHOLE_REPLY, Fence, fence_at
from toolspeak.text.scan import Markers, folded
from toolspeak.toolset.toolset import ToolSet


class Sign(Enum):
    """Literals that need no data."""

    CLOSER = auto()
    RESULT = auto()


class FenceLine(Enum):
    """The meaning of a line that is a Markdown fence."""

    ORDINARY = auto()
    WHOLE = auto()
    """It may be around the whole reply."""
    CLOSES = auto()
    """It closes the one around the whole reply."""


MarkerAction: TypeAlias = Wrapper | ReasoningMarks | Label | Special | Sign | FenceLine


class FoundMarker(NamedTuple):
    """A literal and what it does; an empty literal means: wait for more text."""

    literal: str
    action: MarkerAction | None


class MarkerTable:
    """Literals of one kind of place. Words keep their case; markup in brackets is read in any case."""

    def __init__(self, actions: Mapping[str, MarkerAction]) -> None:
        """Compile."""
        words = {literal for literal in actions if literal[0].isalnum()}
        self._words = Markers(words)
        self._markup = Markers(actions.keys() - words, ignore_case=True)
        self._actions = {self._key(literal): action for literal, action in actions.items()}

    def at(self, text: str, pos: int, *, final: bool) -> FoundMarker | None:
        """Return the marker at `pos`; None for none."""
        markers = self._words if text[pos].isalnum() else self._markup
        literal = markers.match(text, pos, final=final)
        return None if literal is None else FoundMarker(literal, self._actions.get(literal))

    def action(self, literal: str) -> MarkerAction | None:
        """Return what a literal does, as it was found."""
        return self._actions.get(literal)

    def _key(self, literal: str) -> str:
        return literal if literal[0].isalnum() else folded(literal)


class MarkerTables:
    """All of a grammar's literals."""

    def __init__(self, grammar: MarkupGrammar) -> None:
        """Compile; wrappers that share an opener become one."""
        self.wrappers = _merged(grammar.wrappers)
        self.start = MarkerTable(_actions(grammar, self.wrappers, OpenerPosition.START))
        self.line = MarkerTable(_actions(grammar, self.wrappers, OpenerPosition.LINE))
        anywhere = _actions(grammar, self.wrappers, OpenerPosition.ANYWHERE)
        self.anywhere = MarkerTable(anywhere)
        self.points = Markers((*anywhere, *QUOTED_MARKUP, "\n", "`"), ignore_case=True)
        self.fences = {info: wrapper for wrapper in grammar.wrappers if wrapper.fence for info in wrapper.openers}
        self.result_fences = frozenset(line.lstrip("`") for line in grammar.result_lines if line.startswith("```"))
        self.bare_line = _bare(grammar, OpenerPosition.LINE)
        self.bare_start = _conditional(_bare(grammar, OpenerPosition.START), self.bare_line)
        self.whole_fences = grammar.whole_fences
        self._results = frozenset(grammar.results)
        self._anywhere = anywhere
        self._in_reasoning: dict[ReasoningMarks, ReasoningTable] = {}

    @cached_property
    def results(self) -> Markers:
        """Return the beginnings of a tool result; only readers that enter a wrapper need them."""
        return Markers(self._results, ignore_case=True)

    def in_reasoning(self, mark: ReasoningMarks) -> "ReasoningTable":
        """Return what to look for inside one kind of reasoning; a model uses one, so the others are not compiled."""
        if mark not in self._in_reasoning:
            self._in_reasoning[mark] = _reasoning_table(mark, self._anywhere)
        return self._in_reasoning[mark]


class ReasoningTable(NamedTuple):
    """The markers inside one kind of reasoning."""

    points: Markers
    ends: Markers
    closers: frozenset[str]
    stops: frozenset[str]
    openers: dict[str, Wrapper]
    debris: frozenset[str]
    """Closers of anything else, which mean nothing after a call: MiniMax ends its turn with `[e~[` while it thinks."""


@lru_cache(maxsize=256)
def marker_tables(grammar: MarkupGrammar) -> MarkerTables:
    """Compile once for all readers of a grammar."""
    return MarkerTables(grammar)


def _bare(grammar: MarkupGrammar, where: OpenerPosition) -> tuple[Wrapper, ...]:
    return tuple(wrapper for wrapper in grammar.wrappers if not wrapper.openers and wrapper.where is where)


def _conditional(at_start: tuple[Wrapper, ...], at_lines: tuple[Wrapper, ...]) -> tuple[Wrapper, ...]:
    """Leave out recoveries of what the dialect itself reads at any line: their condition would take calls away."""
    free = {form for wrapper in at_lines if not (wrapper.tail or wrapper.needs_closer) for form in wrapper.forms}
    return tuple(wrapper for wrapper in at_start if not (wrapper.tail and free.issuperset(wrapper.forms)))


def _merged(wrappers: tuple[Wrapper, ...]) -> dict[str, Wrapper]:
    merged: dict[str, Wrapper] = {}
    for wrapper in wrappers:
        for opener in () if wrapper.fence else wrapper.openers:
            known = merged.get(opener)
            merged[opener] = wrapper if known is None else _both(known, wrapper)
    return merged


def _both(one: Wrapper, other: Wrapper) -> Wrapper:
    """Join wrappers with a common opener; if it leaves no doubt in one dialect, it leaves none here."""
    return replace(
        one,
        openers=tuple(dict.fromkeys(one.openers + other.openers)),
        closers=tuple(dict.fromkeys(one.closers + other.closers)),
        forms=_forms(one.forms + other.forms),
        where=max(one.where, other.where),
        sure=one.sure or other.sure,
        tail=one.tail and other.tail,
    )


def _forms(forms: tuple[BodyForm, ...]) -> tuple[BodyForm, ...]:
    """Join headers of several dialects into one form: only the whole header tells which one it is."""
    named = [form for form in dict.fromkeys(forms) if isinstance(form, NamedJson)]
    others = tuple(form for form in dict.fromkeys(forms) if not isinstance(form, NamedJson))
    return (*others, reduce(lambda one, other: one | other, named)) if named else others


def _actions(grammar: MarkupGrammar, wrappers: Mapping[str, Wrapper], where: OpenerPosition) -> dict[str, MarkerAction]:
    actions: dict[str, MarkerAction] = {}
    if where is OpenerPosition.ANYWHERE:
        closers = (*grammar.closers, *(c for w in wrappers.values() for c in w.closers), *_closers(grammar))
        actions |= dict.fromkeys(filter(_is_markup, closers), Sign.CLOSER)
        actions |= dict.fromkeys(grammar.results, Sign.RESULT)
    elif where is OpenerPosition.LINE:
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


def _closers(grammar: MarkupGrammar) -> tuple[str, ...]:
    """Return the closers of reasoning: alone, they are debris, since the prompt's template has opened it."""
    return tuple(closer for mark in grammar.reasoning for closer in mark.closers)


def _reasoning_table(mark: ReasoningMarks, anywhere: Mapping[str, MarkerAction]) -> ReasoningTable:
    openers = {
        folded(literal): action
        for literal, action in anywhere.items()
        if isinstance(action, Wrapper) and literal not in mark.stops
    }
    closers, stops = frozenset(map(folded, mark.closers)), frozenset(map(folded, mark.stops))
    others = frozenset(folded(literal) for literal, action in anywhere.items() if action is Sign.CLOSER)
    debris = others - closers - stops
    points = Markers((*mark.closers, *mark.stops, *openers, *debris), ignore_case=True)
    ends = Markers((*mark.closers, *mark.stops), ignore_case=True)
    return ReasoningTable(points, ends, closers, stops, openers, debris)


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


_ORPHAN = re.compile(r"<\\?/[\w:.\-/]{0,40}>")
_ORPHAN_CUT = re.compile(r"<(?:\\?/?[\w:.\-/]{0,40})?\Z")
HELD: Final = FoundMarker("", None)


class LookupContext(NamedTuple):
    """The place of a lookup: nothing shown yet; right after a call; calls that wait for the end."""

    nothing_seen: bool
    after_call: bool
    pending: bool
    called: bool
    """A call came before, wherever."""
    around: Fence | None
    """The fence around it that may turn out to be around the whole reply."""


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Looks things up for one reader."""

    tables: MarkerTables
    tools: ToolSet
    stop: tuple[str, ...]
    _scopes: dict[int, Scope] = field(default_factory=dict[int, Scope])
    """By the identity of the wrapper, which the tables keep: one is needed at every line."""

    def at(self, text: str, pos: int, place: LookupContext, *, final: bool) -> FoundMarker | None:
        """Return what opens at `pos`; HELD to wait for more text, None for nothing."""
        if place.after_call or place.pending:
            orphan = self._orphan(text, pos, place, final=final)
            if orphan is not None:
                return orphan
        tables = (self.tables.start,) if place.nothing_seen else ()
        for table in (*tables, self.tables.line, self.tables.anywhere):
            found = table.at(text, pos, final=final)
            if found is not None:
                return HELD if found.literal == "" else found
        fence = fence_at(text, pos, final=final)
        if fence is not None:
            return HELD if fence == "" else self._fenced(fence, place)
        return self._bare(text, pos, place, final=final)

    def _orphan(self, text: str, pos: int, place: LookupContext, *, final: bool) -> FoundMarker | None:
        """After a call, any closing tag is debris, and so is a marker that the end of the text cuts."""
        if place.pending and text[pos] in ";,":
            return FoundMarker(text[pos], Sign.CLOSER)
        orphan = _ORPHAN.match(text, pos)
        if orphan is not None:
            return FoundMarker(orphan.group(), Sign.CLOSER)
        if _ORPHAN_CUT.match(text, pos):
            return FoundMarker(text[pos:], Sign.CLOSER) if final else HELD
        if final and self.tables.anywhere.at(text, pos, final=False) == HELD:
            return FoundMarker(text[pos:], Sign.CLOSER)
        return None

    def _fenced(self, fence: Fence, place: LookupContext) -> FoundMarker:
        if place.around is not None and fence.closes(place.around):
            return FoundMarker(fence.line, FenceLine.CLOSES)
        if place.called and fence.info.partition(" ")[0] in self.tables.result_fences:
            return FoundMarker(fence.line, Sign.RESULT)
        wrapper = self.tables.fences.get(fence.info)
        if wrapper is not None:
            return FoundMarker(fence.line, wrapper)
        whole = self.tables.whole_fences and place.nothing_seen and place.around is None
        return FoundMarker(fence.line, FenceLine.WHOLE if whole and fence.info in WHOLE_REPLY else FenceLine.ORDINARY)

    def _bare(self, text: str, pos: int, place: LookupContext, *, final: bool) -> FoundMarker | None:
        """Return a wrapper without an opener if one of its forms starts here."""
        at_start = self.tables.bare_start if place.nothing_seen or place.pending else ()
        waits = False
        for wrapper in (*at_start, *self.tables.bare_line):
            scope = self._scopes.get(id(wrapper))
            if scope is None:
                scope = self._scopes[id(wrapper)] = wrapper.scope(self.tools, self.stop)
            for kind in wrapper.forms:
                starts = kind.starts(text, pos, scope, final=final)
                if starts:
                    return FoundMarker("", wrapper)
                waits = waits or starts is None
        return HELD if waits and not final else None

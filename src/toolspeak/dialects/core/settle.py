"""Ends a call of tagged values late: its end counts only if what follows agrees with it (P2).

    <parameter=content>
    A call ends with </parameter></function></tool_call>.
    </parameter>
    </function>
    </tool_call>

Coding agents write files about the markup that they are called with. Values are raw text, so the first end that looks
complete may be part of a file, and half a file would be written. Two things tell:

- Markup that a value opens, it closes: `Nesting` counts, and a complete call inside a value is data.
- After the end of a call comes the next call, the wrapper's closer, or the end of the text. If anything else follows,
  the call waits, up to `LOOK_AHEAD` characters: if a closer follows that nothing has opened, and the rest of a call
  after it, the value goes on to there. Otherwise the call is delivered, and the text after it is read again.

The price is that text after a call comes late. Models stop after their calls, and a result that they forge ends the
wait. A message has `MOST_WAITS` waits that meet text, so that the time stays linear; one that sees to the end that all
the markup which follows is balanced is the last, since no later call can need another.
"""

import re
from abc import abstractmethod
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from typing_extensions import override

from toolspeak.dialects.core.form import MORE, BodyOutcome, FormState, FormStates, NonCall, Scope
from toolspeak.dialects.core.growth import TextMembers
from toolspeak.dialects.core.tags import Tag, TagLexer, TextValue, followed
from toolspeak.ir.complaint import Problem
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.text.scan import folded
from toolspeak.toolset.check import Attempt, TextArg, TextKind

LOOK_AHEAD: Final = 256 * 1024
"""Characters of text after a call within which a closer can still prove that the call goes on."""
MOST_WAITS: Final = 8
_TWO_ENDS: Final = "the call ends twice"
_BLANK = re.compile(r"\s*")


class TextInTags(NamedTuple):
    """A value that was read, as it is in the text: the call's end may still turn out to be part of it."""

    key: str
    value: TextValue | str
    kind: TextKind = "by_schema"
    is_laid_out: bool = False
    """Templates with this kind of tag put the value on lines of its own."""
    is_escaped: bool = False

    def argument(self) -> TextArg:
        """Return the value as an argument, to the byte, without the lines of the template."""
        if isinstance(self.value, str):
            return TextArg(self.key, self.value, self.kind)
        text = self.value.text if self.is_laid_out else self.value.raw
        return TextArg(self.key, text.replace("\\/", "/") if self.is_escaped else text, self.kind)


class Nesting:
    """The markup that one value has opened so far."""

    __slots__ = ("calls", "closed_last", "is_marked", "keys", "parameters", "sibling")

    def __init__(self) -> None:
        """Start with nothing."""
        self.parameters = 0
        self.calls = 0
        self.keys = 0
        """Tags with the name of the value's own key."""
        self.is_marked = False
        """The value holds markup of calls, open or closed: closers that are missing or doubled cannot be recovered."""
        self.closed_last = False
        """The last markup in the value is a parameter's closer."""
        self.sibling = False
        """It has opened a parameter that the tool has and the call lacks: the value's own closer may be missing."""

    @property
    def is_open(self) -> bool:
        """Return whether a parameter or call inside the value is open."""
        return bool(self.parameters or self.calls)

    def open_parameter(self, *, sibling: bool) -> None:
        """Count a parameter's opener."""
        self.sibling = self.sibling or (sibling and not self.calls)
        self.parameters += 1
        self.is_marked, self.closed_last = True, False

    def close_parameter(self) -> None:
        """Count a parameter's closer that is data."""
        self.parameters = max(0, self.parameters - 1)
        self.is_marked = self.closed_last = True

    def open_call(self) -> None:
        """Count a call's opener."""
        self.calls += 1
        self.is_marked, self.closed_last = True, False

    def close_call(self) -> None:
        """Count a call's closer that is data."""
        self.calls = max(0, self.calls - 1)
        self.is_marked, self.closed_last = True, False


@dataclass(slots=True)
class _Opened:
    """The markup after a call that is open: of calls that follow, or of a file that has not ended."""

    values: int = 0
    calls: int = 0
    """Below zero if something was closed that the text after the call has not opened."""
    values_closed: int = 0
    has_loose_values: bool = False
    """A value was opened outside of a call."""
    is_after_value: bool = False
    """A value was closed, and only blanks follow."""
    balanced: bool = True
    """No closer of a value came without its opener."""
    is_wrapper_closed: bool = False

    def open_value(self) -> None:
        """Count an opener of a value."""
        self.has_loose_values = self.has_loose_values or self.calls <= 0
        self.values += 1

    def close_value(self) -> None:
        """Count a closer of a value."""
        self.balanced = self.balanced and self.values > 0
        self.values = max(0, self.values - 1)
        self.values_closed += 1
        self.is_after_value = True

    def close_call(self, *, in_text: bool) -> None:
        """Count a closer of a call or wrapper; the one of the wrapper around the call is expected."""
        if in_text and (self.calls > 0 or self.is_wrapper_closed):
            self.calls -= 1
        else:
            self.is_wrapper_closed = True

    @property
    def is_balanced(self) -> bool:
        """Return whether everything that was opened is closed, and nothing else."""
        return not self.values and not self.calls and self.balanced

    @property
    def is_doubtful(self) -> bool:
        """Return whether the closers of a call are left over, or values are outside of calls."""
        return self.values_closed > 0 and (self.calls < 0 or self.has_loose_values)


class TaggedCall(FormStates):
    """Reads one call whose values are raw text between tags."""

    def __init__(self, first: FormState, scope: Scope, tags: TagLexer) -> None:
        """Start in the first state."""
        super().__init__(first)
        self._scope, self._tags = scope, tags
        self._name: str | None = None
        self._texts: list[TextInTags] = []
        self.returned = 0
        """After an outcome: how many of the consumed characters do not belong to the call, and must be read again."""
        self.met_text = False
        self.is_fenced = False
        """The body began with a Markdown fence, which has not ended."""
        self._value: TextValue | None = None
        self._last: TextValue | None = None  # the value before this place, which may go on
        self._nested = Nesting()
        self._swallowed: set[str] = set()  # keys that a value holds, each after a closer, as the next one of a call
        self._value_end = -1  # where the value has ended in this step, in the text of this step
        self._after: list[str] = []  # the text since the end of the last value
        self._ahead = 0  # characters after the end of the call
        self._blanks = 0
        self._opened_ahead = _Opened()
        self._members: TextMembers | None = None

    @override
    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the end of the call, and look ahead."""
        pos, outcome = self._feed(text, pos, final=final)
        self._tell(outcome)
        return pos, outcome

    def _feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        while True:
            before, self._moved, self._value_end = pos, False, -1
            pos, outcome = self._state(text, pos, final)
            if outcome is not MORE:
                return pos, outcome
            if self._value_end >= 0:
                self._after = [text[self._value_end : pos]]
            elif self._last is not None and pos > before:
                self._after.append(text[before:pos])
            if pos == before and not self._moved:
                return pos, MORE

    def _tell(self, outcome: BodyOutcome) -> None:
        """Tell the values while they are written (CHK-7); the last one may go on until the call has ended."""
        growth, value = self._scope.growth, self._value
        if growth is None or not (self._texts or (value is not None and self._open_text(value).key)):
            return
        if self._members is None:
            if self._name not in self._scope.tools.names:
                return
            self._members = TextMembers(growth, self._name, self._scope.tools)
        is_done = isinstance(outcome, tuple) and outcome[0].problem is None
        open_text = None if value is None else self._open_text(value)
        for text in self._texts[self._members.told :]:
            if text.value is self._last and not is_done:
                open_text = text
            else:
                self._members.complete(text.argument(), None if isinstance(text.value, str) else text.value)
        if is_done:
            self._members.end()
        elif open_text is not None and open_text.key and not isinstance(open_text.value, str):
            self._members.grow(open_text.key, open_text.kind, open_text.value, is_laid_out=open_text.is_laid_out)

    # values

    @abstractmethod
    def _open_text(self, value: TextValue) -> TextInTags:
        """Return a value that is being read, as it will be stored; one without a key is no argument."""

    def _start_value(self, value: TextValue) -> None:
        self._value, self._last, self._nested = value, None, Nesting()
        self._go(self._in_value)

    def _in_value(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        value = self._value
        if value is None:
            return pos, MORE
        pos, ending = value.feed(text, pos, final=final)
        if ending is None:
            return pos, self._cut_short() if final else MORE
        self._value_end = pos
        self._value, self._last = None, value
        return pos + self._end_value(value, ending), MORE

    @abstractmethod
    def _end_value(self, value: TextValue, ending: Tag) -> int:
        """Store a value, go to the next state, and return how many characters of the ending tag are consumed."""

    @property
    def _tool(self) -> str | None:
        """The tool that the call's name means."""
        return self._scope.tools.find(self._name).tool if self._name is not None else None

    def _missing(self) -> AbstractSet[str]:
        """Return the keys that the tool has and the call lacks."""
        tool = self._tool
        return self._scope.tools.properties(tool) - self._given() if tool is not None else frozenset[str]()

    @abstractmethod
    def _given(self) -> AbstractSet[str]:
        """Return the keys that the call has."""

    @abstractmethod
    def _reopen_value(self) -> None:
        """Forget that the last value has ended."""

    @abstractmethod
    def _cut_short(self) -> BodyOutcome:
        """Return the outcome if the text ends inside the call."""

    def _done(self) -> BodyOutcome:
        """Return the complete call."""
        return (Attempt(self._name, texts=tuple(text.argument() for text in self._texts), sure=self._scope.sure),)

    def _rejected(self, problem: Problem, detail: str) -> BodyOutcome:
        """Return a call with a problem; where its opener is not certain, it is text."""
        if not self._scope.sure:
            return NonCall.TEXT
        return (Attempt(self._name, problem=problem, detail=detail),)

    def _doubtful(self) -> BodyOutcome:
        """Return the outcome if the call has two ends, and nothing tells which one is meant."""
        return self._rejected(Problem.PARSE_ERROR, _TWO_ENDS)

    # after the call

    def _complete(self, pos: int) -> tuple[int, BodyOutcome]:
        """End the call at `pos`, if what follows agrees."""
        if self._last is None or not self._scope.settles:
            return pos, self._settled(0)
        self._ahead = self._blanks = 0
        self._opened_ahead = _Opened()
        self.met_text = False
        self._go(self._settling)
        return pos, MORE

    @property
    def spent(self) -> int:
        """Return how many waits of the message this call has used; all, if it saw that no other call needs one."""
        if not self.met_text:
            return 0
        return MOST_WAITS if self._opened_ahead.is_balanced else 1

    def settle(self) -> BodyOutcome:
        """Take a call that waits at its word; None if none does."""
        outcome = self._settled(0) if self._state == self._settling else MORE
        self._tell(outcome)
        return outcome

    def _settling(self, text: str, pos: int, final: bool) -> tuple[int, BodyOutcome]:  # noqa: FBT001
        start = pos
        while True:
            pos = self._skip(text, pos)
            step: int | None = 0
            if self._may_wait(pos - start):
                at_end = pos == len(text)
                step = self._step_ahead(text, pos, final=final) if not at_end else 0 if final else None
            if step is None:
                self._ahead += pos - start
                return pos, MORE
            if step == 0:
                return pos, self._settled(pos - start)
            if step < 0:
                return pos, self._go_on(text[start:pos])
            pos += step

    def _settled(self, more: int) -> BodyOutcome:
        """End the call where it seemed to; if that is in doubt, everything after it may be part of a value."""
        if self._opened_ahead.is_doubtful or not self._swallowed.isdisjoint(self._missing()):
            return self._doubtful()
        self.returned = self._ahead + more
        return self._done()

    def _may_wait(self, more: int) -> bool:
        return self._ahead + more <= LOOK_AHEAD and self._blanks <= MAX_BLANKS

    def _skip(self, text: str, pos: int) -> int:
        """Return the next place that may have markup: in text the next tag, else after blanks."""
        if self.met_text:
            found = text.find(self._tags.first, pos)
            other = text.find("<", pos, len(text) if found < 0 else found)
            end = min((at for at in (found, other) if at >= 0), default=len(text))
            opened = self._opened_ahead
            opened.is_after_value = opened.is_after_value and not text[pos:end].strip()
            return end
        blank = _BLANK.match(text, pos)
        end = blank.end() if blank else pos
        self._blanks += end - pos
        return end

    def _step_ahead(self, text: str, pos: int, *, final: bool) -> int | None:
        """Return how much of the text at `pos` is looked at; 0 if the call has ended, -1 if not, None to wait."""
        scope = self._scope
        ender = scope.enders.match(text, pos, final=final)
        if ender == "":
            return None
        if ender is not None:
            return self._ender_ahead(ender)
        result = scope.results.match(text, pos, final=final)
        if result is not None:
            return 0 if result else None
        tag = self._tags.at(text, pos, final=final)
        if tag == "":
            return None
        self._blanks = 0
        if not isinstance(tag, Tag):
            self.met_text = True
            return 1
        return self._tag_ahead(tag, text, pos + len(tag.raw), final=final)

    def _ender_ahead(self, ender: str) -> int:
        self._blanks = 0
        if ender not in self._scope.opening.literals:
            self._opened_ahead.close_call(in_text=self.met_text)
        elif not self.met_text:
            return 0
        else:
            self._opened_ahead.calls += 1
        return len(ender)

    def _tag_ahead(self, tag: Tag, text: str, after: int, *, final: bool) -> int | None:
        length, opened = len(tag.raw), self._opened_ahead
        if self._closes_value(tag):
            follows: bool | None = False
            if opened.calls <= 0 or not opened.values:
                follows = self._rest_follows(text, after, final=final, or_next=not opened.values)
            if follows is False:
                opened.close_value()
            return length if follows is False else -1 if follows else None
        if opened.is_after_value:
            key = self._next_key(tag, text, after, final=final)
            if key is None:
                return None
            self._swallowed.add(key)
        opened.is_after_value = False
        if self._opens_value(tag):
            opened.open_value()
        elif self._opens_call(tag) or self._opens_wrapper(tag):
            if not self.met_text:
                return 0
            opened.calls += 1
        elif self._closes_call(tag) and self.met_text:
            opened.close_call(in_text=True)
        self.met_text = self.met_text or not tag.closes
        return length

    def _opens_wrapper(self, tag: Tag) -> bool:
        """Return whether the tag opens what the wrapper's closer closes: a call that has lost its opener has none."""
        return not tag.closes and folded(f"</{tag.name}>") in self._scope.enders.literals

    def _go_on(self, looked_at: str) -> BodyOutcome:
        """Let the value go on to a closer that nothing else has opened."""
        value = self._last
        if value is None or not (self.met_text or self._nested.is_marked):
            return self._doubtful()  # nothing but closers: the model has doubled them, or its file ends with some
        value.extend("".join(self._after) + looked_at)
        self._after = []
        self._reopen_value()
        self._start_value(value)
        self._nested.is_marked = True
        return MORE

    @abstractmethod
    def _opens_value(self, tag: Tag) -> bool:
        """Return whether the tag opens a value."""

    @abstractmethod
    def _closes_value(self, tag: Tag) -> bool:
        """Return whether the tag closes a value."""

    @abstractmethod
    def _next_key(self, tag: Tag, text: str, after: int, *, final: bool) -> str | None:
        """Return the key if the tag begins the next value of a call, else nothing; None asks for more text."""

    @abstractmethod
    def _opens_call(self, tag: Tag) -> bool:
        """Return whether the tag opens a call inside the wrapper."""

    @abstractmethod
    def _closes_call(self, tag: Tag) -> bool:
        """Return whether the tag closes a call inside the wrapper."""

    def _rest_follows(self, text: str, after: int, *, final: bool, or_next: bool = True) -> bool | None:
        """Return whether the end of a call follows a value's closer, or the next value; None asks for more text."""

        def accepts(tag: Tag) -> bool:
            return self._goes_on(tag, or_next=or_next)

        enders = self._scope.enders
        return followed(text, after, final=final, tags=self._tags, enders=enders, accepts=accepts, at_end=False)

    @abstractmethod
    def _goes_on(self, tag: Tag, *, or_next: bool) -> bool:
        """Return whether a call goes on with this tag after a value: its own end, or with `or_next` its next value."""

"""Reads the block after a wrapper's opener: calls, in any form that the wrapper accepts, up to its closer."""

import re
from dataclasses import replace

from toolspeak.dialects.core.form import MORE, BodyOutcome, FormReader, NonCall, Scope
from toolspeak.dialects.core.grammar import Wrapper
from toolspeak.dialects.core.settle import MOST_WAITS, TaggedCall
from toolspeak.ir.complaint import Problem
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.toolset.check import Attempt

_BLANK = re.compile(r"\s*")
# Small models, and Qwen2.5-Coder, put a Markdown fence inside the tags.
_FENCE = re.compile(r"```[\w ]{0,24}\n?")
_CLOSING_FENCE = re.compile(r"```\n?")
_CUT_TAG = re.compile(r"<[^<>]{0,512}\Z")
_SURPLUS = "}]);,"  # after a complete body: models close more brackets than they opened, or separate their calls
_MOST_OTHERS = 8
"""Reasoning tags and fences that may be between an opener and its body. A refused block is read again after its
opener, so that a flood of openers and tags in turns would cost the square of its length (P8)."""


class WrapperBlock:
    """Reads bodies one after the other; each one's attempts are told as soon as they are complete."""

    def __init__(self, wrapper: Wrapper, scope: Scope, spent: int = 0) -> None:
        """Start after the opener."""
        self.ended = False
        self.last_opener = 0
        """Characters before the last of several openers in a row; 0 if the block has only the one before it."""
        self.returned = 0
        """After an outcome: how many of the characters consumed since the last one must be read again."""
        self.spent = spent
        """How many waits for what follows a call the message has used (`settle.py`)."""
        self._consumed = 0
        self._others = 0  # reasoning tags and fences that were passed
        self._wrapper = wrapper
        self._scope = scope if spent < MOST_WAITS else replace(scope, settles=False)
        self._closers, self._skipped = wrapper.closing, wrapper.skipped
        self._form: FormReader | None = None
        self._bodies = 0
        self._full = False  # no more bodies before the next opener
        self._peeled = False  # a fence inside the wrapper is open
        self._awaiting: tuple[Attempt, ...] | None = None  # attempts that count only with a closer

    def feed(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the next outcome."""
        self.returned = 0
        length, outcome = self._feed(text, final=final)
        self._consumed += length - self.returned
        return length, outcome

    def settle(self) -> BodyOutcome:
        """Return the call that only waits for what follows it; None if none does."""
        form = self._form
        outcome = form.settle() if isinstance(form, TaggedCall) else MORE
        if outcome is MORE:
            return MORE
        self._form = None
        self._look_back(form)
        return self._told(outcome)

    def _look_back(self, form: FormReader | None) -> None:
        """Keep what a form has looked at after its call."""
        if not isinstance(form, TaggedCall):
            return
        self.returned = form.returned
        self._peeled = self._peeled or form.is_fenced
        self.spent += form.spent
        if self.spent >= MOST_WAITS:
            self._scope = replace(self._scope, settles=False)

    def _feed(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        pos = 0
        while True:
            if self._form is not None:
                pos, outcome = self._form.feed(text, pos, final=final)
                if outcome is MORE or outcome is NonCall.SHOWN:
                    return pos, outcome
                self._look_back(self._form)
                self._form = None
                if not self._put_off(outcome):
                    return pos, self._told(outcome)
            pos, outcome = self._between(text, pos, final=final)
            if self._form is None:
                return pos, outcome

    def _put_off(self, outcome: BodyOutcome) -> bool:
        if self._wrapper.needs_closer and isinstance(outcome, tuple):
            self._awaiting = outcome
            self._bodies += 1
            return True
        return False

    def _told(self, outcome: BodyOutcome) -> BodyOutcome:
        if outcome is NonCall.REFUSED or outcome is NonCall.TEXT:
            self.ended = True
        self._bodies += 1
        self._full = self._wrapper.single
        return outcome

    def _between(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Skip to the next body (then a form is set), or end; blanks stay where something else follows them."""
        while True:
            found = _BLANK.match(text, pos)
            at = found.end() if found else pos
            if at - pos > MAX_BLANKS:
                return pos + MAX_BLANKS + 1, self._end(runaway=True)
            if at == len(text):
                return (at, self._end()) if final else (pos, MORE)
            step = self._markup(text, at, final=final)
            if step is None:
                return pos, MORE
            if step == 0:
                outcome = self._body(text, at, final=final)
                if self._form is not None:
                    return at, outcome
                return (len(text) if outcome is not MORE and self._cut_tag(text, at, final=final) else pos), outcome
            pos = at + step
            if self.ended:
                return pos, self._closed()

    def _markup(self, text: str, pos: int, *, final: bool) -> int | None:
        """Return the length of the markup at `pos` that is no body; 0 for none, None to wait."""
        closer = self._closers.match(text, pos, final=final)
        skipped = self._skipped.match(text, pos, final=final)
        if closer:
            self.ended = True
            return len(closer)
        if skipped:
            return self._skip(skipped, pos)
        if closer == "" or skipped == "":
            return None
        if self._bodies and text[pos] in _SURPLUS and not self._may_start(text, pos, final=final):
            return 1
        return self._fence(text, pos, final=final)

    def _skip(self, marker: str, pos: int) -> int:
        """Pass an opener, or a reasoning tag that a template has left; of those only a few."""
        if marker not in self._wrapper.opening.literals:
            self._others += 1
            if self._others > _MOST_OTHERS:
                return 0
        elif not self._others:
            self.last_opener = self._consumed + pos
        self._full = False
        return len(marker)

    def _fence(self, text: str, pos: int, *, final: bool) -> int | None:
        if text[pos] != "`" or self._others > _MOST_OTHERS:
            return 0
        if len(text) - pos < len("```") and not final:
            return None
        found = (_CLOSING_FENCE if self._bodies else _FENCE).match(text, pos)
        if found is None or (self._bodies and not self._peeled):
            return 0
        if found.end() == len(text) and not final:
            return None
        self._peeled = not self._bodies
        self._others += 1
        return found.end() - pos

    def _body(self, text: str, pos: int, *, final: bool) -> BodyOutcome:
        waiting = False
        if self._awaiting is None and not self._full:
            for kind in self._wrapper.forms:
                starts = kind.starts(text, pos, self._scope, final=final)
                if starts:
                    self._form = kind.new(self._scope)
                    return MORE
                waiting = waiting or starts is None
        return MORE if waiting and not final else self._end(junk=not self._cut_tag(text, pos, final=final))

    def _may_start(self, text: str, pos: int, *, final: bool) -> bool:
        """Return whether a body may start here: the tags of MiniMax M3 begin with a bracket."""
        return any(kind.starts(text, pos, self._scope, final=final) is not False for kind in self._wrapper.forms)

    def _cut_tag(self, text: str, pos: int, *, final: bool) -> bool:
        """Return whether the text ends inside a tag that would have begun a body."""
        return final and self._scope.sure and not self._bodies and _CUT_TAG.match(text, pos) is not None

    def _closed(self) -> BodyOutcome:
        return self._awaiting if self._awaiting is not None else NonCall.DEBRIS

    def _end(self, *, junk: bool = False, runaway: bool = False) -> BodyOutcome:
        """End without a closer: at the end of the text, or before something that is no call."""
        self.ended = True
        if self._awaiting is not None:
            return NonCall.TEXT
        if self._bodies == 0 and (junk or not self._scope.sure):
            return NonCall.REFUSED
        if self._bodies == 0 or runaway:
            return (Attempt(None, problem=Problem.TRUNCATED, detail="nothing follows the opener", cut=runaway),)
        return NonCall.DEBRIS

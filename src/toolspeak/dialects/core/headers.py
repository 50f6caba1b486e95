"""G6, message headers that carry the recipient: `<|channel|>commentary to=functions.f <|message|>{…}<|call|>`.

The recipient decides, not the channel: gpt-oss writes about half of its calls on `analysis` (47 % in one measurement).
Muse's header `to=f<|message|>` carries no call by itself: it is dropped, and the tags after it are the call.
"""

import re
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.dialects.core.grammar import ReasoningMarks
from toolspeak.dialects.core.json_form import JsonBody
from toolspeak.ir.complaint import Problem
from toolspeak.text.scan import Markers
from toolspeak.toolset.check import Attempt
from toolspeak.toolset.toolset import ToolSet

ENDS: Final = ("<|end|>", "<|call|>", "<|return|>")
STARTS: Final = ("<|start|>", "<|channel|>")
ROLE_RECIPIENT: Final = "to=functions."
"""How an answer begins whose prompt ended with `<|start|>assistant`, where gpt-oss calls without thinking first."""
ANSWER_ENDS: Final = (*ENDS, *STARTS)
ANALYSIS: Final = ReasoningMarks("<|channel|>analysis<|message|>", ENDS, stops=STARTS)
_MESSAGE = Markers(("<|message|>", *ENDS))
_ENDERS = Markers((*ENDS, *STARTS))
_RECIPIENT = re.compile(r"\bto=([^\s<]{1,128})")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w{1,32})")
_BLANK = re.compile(r"\s*")
_LEGAL = re.compile(r"(?:<\|channel\|>|<\|constrain\|>|[\w.\-=:/ ])*")
_LEGAL_CUT = re.compile(r"<(?:\|[a-z]{0,9}\|?)?\Z")
# gpt-oss writes other channels (`comment`), recipients without `functions.` (vllm#42454), and the parts of a header in
# either order; `<|constrain|>` may be missing, or be a bare word.
_KNOWN = re.compile(r"(?:<\|channel\|>)?\s?(?:assistant|analysis|commentary|comment|final)\b")
_MAX_HEADER = 256
_MESSAGE_ONLY = Markers(("<|message|>",))
_MAX_DROPPED_HEADER = 160
_THOUGHTS: Final = ("analysis",)
_ANSWER: Final = "final"
_NO_TOOL: Final = ("assistant", "user", "system")


class ChannelBlock:
    """Reads one header, and the content if a tool is to get it."""

    def __init__(self, opener: str, tools: ToolSet) -> None:
        """Start after the opener."""
        self.ended = False
        self._header = "" if opener == "<|start|>" else opener
        self._scope = Scope(tools, sure=True, enders=_ENDERS)
        self._recipient: str | None = None
        self._body: JsonBody | None = None
        self._thought = False
        self._impure = False

    def feed(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume the header, then the arguments."""
        if self._recipient is None:
            return self._feed_header(text, final=final)
        if self._body is None:
            return self._before_json(text, final=final)
        return self._feed_json(text, self._body, final=final)

    def _feed_header(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        hit = _MESSAGE.search(text, 0, final=final)
        end = len(text) if hit is None else hit.start
        before = len(self._header)
        self._header += text[:end]
        length = self._legal_length()
        if length < len(self._header):
            return max(0, length - before), self._over(NonCall.REFUSED)
        if hit is None or not hit.literal:
            return end, self._over(NonCall.DEBRIS if _KNOWN.match(self._header) else NonCall.REFUSED) if final else MORE
        return end + len(hit.literal), self._read_header(complete=hit.literal == "<|message|>")

    def _legal_length(self) -> int:
        """Return how much of the header can be one; prose and backticks cannot."""
        legal = _LEGAL.match(self._header)
        end = legal.end() if legal else 0
        end = len(self._header) if _LEGAL_CUT.match(self._header, end) else end
        return min(end, _MAX_HEADER)

    def _read_header(self, *, complete: bool) -> BodyOutcome:
        found = _CHANNEL.search(self._header)
        channel = found.group(1) if found else ""
        self._thought = channel in _THOUGHTS
        found = _RECIPIENT.search(self._header)
        if complete and found is not None and found.group(1) not in _NO_TOOL and self._scope.tools:
            self._recipient = found.group(1)
            return NonCall.DEBRIS
        non_call = NonCall.THINKING if self._thought else NonCall.ANSWER if channel == _ANSWER else NonCall.DEBRIS
        return self._over(non_call if complete else NonCall.DEBRIS)

    def _over(self, outcome: BodyOutcome) -> BodyOutcome:
        self.ended = True
        return outcome

    def _before_json(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        blank = _BLANK.match(text)
        pos = blank.end() if blank else 0
        if pos == len(text) and not final:
            return pos, MORE
        self._body = JsonBody(self._scope)
        self._impure = text[pos : pos + 1] != "{"
        length, outcome = self._feed_json(text[pos:], self._body, final=final)
        return pos + length, outcome

    def _feed_json(self, text: str, body: JsonBody, *, final: bool) -> tuple[int, BodyOutcome]:
        pos, over = (0, True) if self._impure else body.feed(text, 0, final=final)
        if not over:
            return pos, MORE
        hit = _ENDERS.search(text, pos, final=final)
        end = len(text) if hit is None else hit.start
        self._impure = self._impure or bool(text[pos:end].strip())
        if hit is None or not hit.literal:
            return end, self._over(self._outcome(body)) if final else MORE
        return end, self._over(self._outcome(body))

    def _outcome(self, body: JsonBody) -> BodyOutcome:
        if not self._impure:
            attempt = body.attempt(self._recipient)
            if attempt.problem is None or not self._thought:
                return (attempt,)
        if self._thought:
            return NonCall.THOUGHT
        detail = "the message to the tool is not one JSON object"
        return (Attempt(self._recipient, problem=Problem.PARSE_ERROR, detail=detail),)


@dataclass(frozen=True)
class Channel:
    """Makes blocks for messages that begin with this token."""

    opener: str

    def new_block(self, tools: ToolSet, stop: tuple[str, ...]) -> ChannelBlock:
        """Make a block for one message."""
        del stop
        return ChannelBlock(self.opener, tools)


class HeaderBlock:
    """Reads up to `<|message|>` on the same line."""

    def __init__(self) -> None:
        """Start after the opener."""
        self.ended = False
        self._length = 0

    def feed(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume the header."""
        hit = _MESSAGE_ONLY.search(text, 0, final=final)
        end = len(text) if hit is None else hit.start
        line = text.find("\n", 0, end)
        allowed = min(end if line < 0 else line, _MAX_DROPPED_HEADER - self._length)
        self._length += allowed
        if allowed < end or (final and hit is None):
            self.ended = True
            return allowed, NonCall.REFUSED
        if hit is None or not hit.literal:
            return end, MORE
        self.ended = True
        return end + len(hit.literal), NonCall.DEBRIS


@dataclass(frozen=True)
class _HeaderKind:
    def new_block(self, tools: ToolSet, stop: tuple[str, ...]) -> HeaderBlock:
        """Make a block for one header."""
        del tools, stop
        return HeaderBlock()


HEADER_TO_MESSAGE: Final = _HeaderKind()

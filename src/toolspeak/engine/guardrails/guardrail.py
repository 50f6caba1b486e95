"""The protocol between a turn and its guardrails.

A turn asks each guardrail of its plan at three moments, and knows nothing else about it:

    judge(call, conversation)             a complete call came    →  None to deliver it, DropCall, or AskModel
    follow_up(calls, conversation)        an answer with calls    →  a question for the calls that are missing
    settle(calls, added, conversation)    the last answer to it   →  those of the added calls that are delivered

A new guardrail is a `Guardrail` in a module of its own, and a row in the catalogue of the package.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from toolspeak.engine.guardrails.language import ENGLISH, LONGEST, OTHER, Language, foreign_language, is_english
from toolspeak.engine.guardrails.mentions import meaning
from toolspeak.engine.trouble import must_call
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import FirstToken
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

FEW_TOOLS: Final = 4
"""The most offered tools with which a tool is held against the request. With more of them the model has a choice, and
seldom calls one for want of a better; and the tools of an agent are steps, which the request need not mention."""


@dataclass(frozen=True, slots=True)
class DropCall:
    """Do not deliver the call. If no call is left, the model is asked to answer in words."""

    complaint: Complaint


@dataclass(frozen=True, slots=True)
class AskModel:
    """Deliver the call unless the model's answer to a question says otherwise.

    The answer must be buffered until then (`Guardrail.buffers`). The model is asked about each tool once.
    """

    request: Request
    rejects: Callable[[str, FirstToken], bool]
    """Takes the model's answer and what is known of its first token; returns whether to drop all calls of this tool."""
    complaint: Complaint
    """The complaint that is recorded if the calls are dropped; it names the tool."""


Judgement: TypeAlias = DropCall | AskModel | None
"""What happens to a call; None delivers it."""


MOST_FOLLOW_UPS: Final = 8
"""The most questions for more calls in one turn, for each guardrail; each one costs a request."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question for more calls, and a filter for the calls in its answer."""

    question: str
    accepted: Callable[[Iterable[Call]], list[Call]]


@dataclass(frozen=True)
class GuardedConversation:
    """The part of a turn that guardrails may use. Its texts are computed when a guardrail first needs them."""

    request: Request
    """The request as the client sent it, without the contract that teaches tools."""
    tools: ToolSet
    """The tools that the present answer may call."""
    offered: tuple[Tool, ...]
    """The client's tools, without the answer tool."""
    unfit_probability: float = 0.0
    """The setting of that name (CHK-14)."""
    copied: str = ""
    """The tool whose definition, or JSON that does not fit it, was the model's first answer in this turn (CHK-15)."""

    @cached_property
    def text(self) -> str:
        """All text of the conversation, of every role and of tool results."""
        return conversation_text(self.request)

    @cached_property
    def language(self) -> Language:
        """The language that the user speaks.

        Only if that cannot be told from the user's own words, the other messages count: the system prompt of a German
        user is often English.
        """
        if foreign := foreign_language(user_words(self.request)):
            return foreign
        return ENGLISH if is_english(self.text) else foreign_language(self.text) or OTHER

    @property
    def is_readable(self) -> bool:
        """Whether values can be looked for in the conversation: it is short, and in a language that guardrails read."""
        return len(self.text) <= LONGEST and self.language.is_read

    @cached_property
    def is_comparable(self) -> bool:
        """Whether its words can be compared with those of English tools: it is short, and in English."""
        return self.is_readable and self.language is ENGLISH

    @cached_property
    def meaning(self) -> frozenset[str]:
        """The stems of its words."""
        return meaning(self.text)

    @property
    def must_call(self) -> bool:
        """Whether `tool_choice` demands a call; then no guardrail may drop one."""
        return must_call(self.request.choice)


@dataclass(frozen=True, slots=True)
class Guardrail:
    """One heuristic: a function for each moment at which a turn asks it. The default functions change nothing."""

    name: str
    """The name of its setting."""
    applies: Callable[[Request], bool] = lambda _: True
    """Returns whether it applies to a request; called once, when the plan is made."""
    judge: Callable[[Call, GuardedConversation], Judgement] = lambda _, __: None
    """Judges a complete call that matches its schema, before it leaves."""
    follow_up: Callable[[Sequence[Call], GuardedConversation], FollowUp | None] = lambda _, __: None
    """Returns a question for the calls that an emulated answer still needs; called again after each answer to it."""
    settle: Callable[[Sequence[Call], Sequence[Call], GuardedConversation], Sequence[Call]] = lambda _, added, __: added
    """Returns which of the calls that were added after its questions are delivered."""
    buffers: bool = False
    """Whether answers must be buffered, because it asks the model before events may leave."""
    drops_repeats: bool = False
    """Whether a call that was answered just now is dropped, without asking the model about it (CHK-9).

    A small model that is asked about a repeated call often only repeats it once more.
    """


def conversation_text(request: Request) -> str:
    """Return all text of a conversation, of every role and of tool results."""
    parts = (part for message in request.messages for part in message.parts)
    return "\n".join(all_texts(parts))


def latest_words(request: Request) -> str:
    """Return the text of the last message if it is the user's, else an empty string."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role is not Role.USER:
        return ""
    return "\n".join(own_texts((last,)))


def user_words(request: Request) -> str:
    """Return the text of all user messages."""
    return "\n".join(own_texts(message for message in request.messages if message.role is Role.USER))


def own_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts of messages, without those inside tool results."""
    yield from (part.text for message in messages for part in message.parts if isinstance(part, Text))


def all_texts(parts: Iterable[object]) -> Iterator[str]:
    """Yield the texts among parts, and those inside tool results."""
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Result):
            yield from all_texts(part.content)

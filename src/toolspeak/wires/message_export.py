"""Kept messages, written out as three vendors have them, in the order in which everything was said (RUN-2).

                       openai                   anthropic                gemini
text before calls      assistant, content       assistant, content       model, text
the calls              assistant, tool_calls    assistant, tool_use      model, functionCall
their results          tool, a message each     user, tool_result        function, functionResponse
the final text         assistant, content       assistant, content       model, text

It is for whoever takes a conversation elsewhere. Requests of our own are not written here: each wire melts and mends
in them what its vendor refuses.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject, as_object
from toolspeak.ir.message import Message, Reasoning, Role
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact, Round, expand
from toolspeak.wires.anthropic import request_writer as anthropic
from toolspeak.wires.anthropic.request_writer import MessageWriter as AnthropicWriter
from toolspeak.wires.gemini import request_writer as gemini
from toolspeak.wires.gemini.request_writer import Contents
from toolspeak.wires.openai_chat import request_writer as openai_chat
from toolspeak.wires.shared.history import link_history
from toolspeak.wires.shared.json_body import dump_body, parse_body

_Write: TypeAlias = Callable[[Message], Iterable[Json]]
_NOTHING_ASKED: Final = Request("", ())
_FROM_ANTHROPIC: Final = replace(_NOTHING_ASKED, extra={"anthropic": {}})
"""As if it had come on that wire, so that it has a role for what the system says."""


def export_messages(kept: Iterable[Compact], form: str) -> list[JsonObject]:
    """Write kept messages in a vendor's form: openai (which is Ollama's too), anthropic or gemini."""
    if form not in FORMS:
        raise BadField("form", f"{form!r} is not one of {', '.join(FORMS)}")
    if form == "gemini":
        kept = (replace(each, rounds=tuple(map(_signed, each.rounds))) for each in kept)
    rows = [row for message in link_history(expand(kept)) for row in FORMS[form](message)]
    return [as_object(parse_body(dump_body(row))) for row in rows]  # arguments are bytes until now, on some wires


def _openai(message: Message) -> Iterator[Json]:
    for row in openai_chat.MessageWriter(openai_chat.names_of(_NOTHING_ASKED), QUIRKS).write((message,)):
        yield {key: value for key, value in as_object(row).items() if value is not None}


def _anthropic(message: Message) -> Iterable[Json]:
    return AnthropicWriter(_FROM_ANTHROPIC, anthropic.names_of(_NOTHING_ASKED)).alone(message)


def _gemini(message: Message) -> Iterator[Json]:
    names = gemini.names_of(_NOTHING_ASKED)
    spoken = replace(message, role=Role.USER) if message.role is Role.SYSTEM else message
    role = _GEMINI_ROLES[message.role]
    for row in Contents((spoken,), names, same_wire=True, nested=True).contents():
        yield {**as_object(row), "role": role}


def _signed(each: Round) -> Round:
    """Part a thought from the signature behind it: that one belongs to the call, and stands on it."""
    match each.before:
        case (*said, Reasoning(text, signature, vendor)) if text and signature:
            return replace(each, before=(*said, Reasoning(text, "", vendor), Reasoning("", signature)))
        case _:
            return each


FORMS: Final[Mapping[str, _Write]] = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}
_GEMINI_ROLES: Final = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "model", Role.TOOL: "function"}
"""A system's words are no content there, but the request's `systemInstruction`: who sends the list moves them."""

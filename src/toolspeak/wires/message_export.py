"""Stored messages in the formats of three vendors, in the order in which everything was said (RUN-2).

                       openai                   anthropic                gemini
text before calls      assistant, content       assistant, content       model, text
the calls              assistant, tool_calls    assistant, tool_use      model, functionCall
their results          tool, a message each     user, tool_result        function, functionResponse
the final text         assistant, content       assistant, content       model, text

Use it to move a conversation to another program. Requests to upstreams are not written here: each wire also merges and
repairs what its vendor rejects.
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
"""As if it had come on that wire, which then has a role for system messages."""


def export_messages(kept: Iterable[Compact], form: str) -> list[JsonObject]:
    """Write stored messages in the format of `openai` (also Ollama's), `anthropic` or `gemini`. Raises `BadField`."""
    if form not in FORMS:
        raise BadField("form", f"{form!r} is not one of {', '.join(FORMS)}")
    if form == "gemini":
        kept = (replace(each, rounds=tuple(map(_signed, each.rounds))) for each in kept)
    rows = [row for message in link_history(expand(kept)) for row in FORMS[form](message)]
    # Some wires embed arguments as raw bytes, which become values only when the row is written and parsed.
    return [as_object(parse_body(dump_body(row))) for row in rows]


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
    """Separate reasoning from its signature, which belongs to the call after it."""
    match each.before:
        case (*said, Reasoning(text, signature, vendor)) if text and signature:
            return replace(each, before=(*said, Reasoning(text, "", vendor), Reasoning("", signature)))
        case _:
            return each


FORMS: Final[Mapping[str, _Write]] = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}
_GEMINI_ROLES: Final = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "model", Role.TOOL: "function"}
"""In a Gemini request, system messages belong into `systemInstruction`: move them there before you send the list."""

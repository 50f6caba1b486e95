"""Judges of the bytes that a server sends: one per wire, written from the vendors' rules and from nothing else.

Belongs here: for each wire a small machine that reads a streamed response and a whole one, refuses (GrammarError) what
the vendor's SDKs or known clients would refuse or lose, and returns what a client has seen.
Does not: code of toolspeak. A judge that shared code with toolspeak would share its mistakes.
Read first: `seen.py`, then `anthropic.py`.
"""

from collections.abc import Callable

from testkit.grammar import anthropic, gemini, ollama, openai_chat, openai_responses
from testkit.grammar.seen import GrammarError, Seen, SeenCall

__all__ = ["WIRES", "GrammarError", "Seen", "SeenCall", "read_stream", "read_whole"]

_STREAMS: dict[str, Callable[[bytes], Seen]] = {
    "openai_chat": openai_chat.read_stream,
    "openai_responses": openai_responses.read_stream,
    "anthropic": anthropic.read_stream,
    "gemini": gemini.read_stream,
    "ollama": ollama.read_stream,
}
_WHOLES: dict[str, Callable[[bytes], Seen]] = {
    "openai_chat": openai_chat.read_whole,
    "openai_responses": openai_responses.read_whole,
    "anthropic": anthropic.read_whole,
    "gemini": gemini.read_whole,
    "ollama": ollama.read_whole,
}
WIRES = tuple(_STREAMS)


def read_stream(wire: str, data: bytes) -> Seen:
    """Judge a whole streamed response."""
    return _STREAMS[wire](data)


def read_whole(wire: str, data: bytes) -> Seen:
    """Judge the body of a response that was not streamed."""
    return _WHOLES[wire](data)

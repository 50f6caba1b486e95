"""A native answer that cannot stand is asked again: in the words of results, where it had calls (CHK-4)."""

from dataclasses import replace

from toolspeak.engine.reading import Reading
from toolspeak.engine.trouble import Kind, Trouble, answered_with, corrections, in_words
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request


def asked_again(sent: Request, reading: Reading, trouble: Trouble, level: int) -> Request:
    """Answer every call of the turn with its error, or say in words what was wrong."""
    said = (Text(reading.quoted),) if reading.said.strip() else ()
    if reading.attempted and trouble.kind is Kind.BAD_CALLS:
        calls = [call for call, _ in reading.attempted]
        results = tuple(answered_with(call, complaint, level) for call, complaint in reading.attempted)
        messages = (Message(Role.ASSISTANT, (*said, *calls)), Message(Role.TOOL, results))
    else:
        words = corrections(trouble, sent.choice, level, in_words)
        answered = (Message(Role.ASSISTANT, said),) if said else ()
        messages = (*answered, Message(Role.USER, (Text("\n\n".join(words)),)))
    return replace(sent, messages=(*sent.messages, *messages))

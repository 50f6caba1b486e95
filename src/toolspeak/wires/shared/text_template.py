"""Decodes a streamed answer whose chunks differ in their text only, without reading the rest of each chunk again.

    data: {"id":"c-7","choices":[{"index":0,"delta":{"content":"The"},"finish_reason":null}]}
    data: {"id":"c-7","choices":[{"index":0,"delta":{"content":" ferry"},"finish_reason":null}]}
    ^ head                                                  ^ text  ^ tail

vLLM sends such chunks, and llama.cpp changes only the time, once a second. A template adds no rule: it is learned from
what the wire's reader made of two chunks, and holds until a chunk does not fit. That chunk is read as a whole,
as are all chunks of a server that numbers or pads each of them.
"""

from typing import Final, Protocol

import msgspec
from typing_extensions import override

from toolspeak.ir.event import Event, TextDelta
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires.shared.answer_decoder import UNREADABLE, AnswerDecoder, FrameReader

_STRING = msgspec.json.Decoder(str).decode
_MOST: Final = 8192
"""Bytes of a chunk that may fit; limits of frames are larger."""
_TRIALS: Final = 8
"""Chunks in a row without a template after which none is looked for: each costs a search of the chunk."""


class TextFrameReader(FrameReader[SseFrame], Protocol):
    """What a wire knows about its answers, if it keeps nothing of their text."""

    @property
    def has_only_text(self) -> bool:
        """Whether a frame of text, read once more with another text, would add that text and change nothing else."""
        ...


class TemplateDecoder(AnswerDecoder[SseFrame]):
    """A decoder with a template.

    A chunk with the head and the tail of an earlier one, and one JSON string between them, has the same structure: the
    reader would make a `TextDelta` of that string. Several such chunks may come in one read.
    """

    def __init__(self, frames: SseDecoder, reader: TextFrameReader) -> None:
        """Take what splits and reads the frames."""
        super().__init__(frames, reader)
        self._sse: Final = frames
        self._reader: Final = reader
        self._head, self._tail = b"", b""
        """The bytes of a chunk before and after its text; they include the quotation marks."""
        self._between = b""
        """What is between the strings of two such chunks."""
        self._is_learned = False
        """The reader has made the text of a later chunk of it too. Before that, the head and the tail are a guess."""
        self._trials = _TRIALS

    @override
    def feed(self, chunk: bytes) -> list[Event]:
        if self._is_learned:
            if texts := self._texts(chunk):
                return list(map(TextDelta, texts))
            self._is_learned = False
        if not self._trials:
            return super().feed(chunk)
        was_between = self._sse.is_between_events
        events = super().feed(chunk)
        is_whole = was_between and self._sse.is_between_events and len(chunk) <= _MOST
        if is_whole and len(events) == 1 and type(event := events[0]) is TextDelta and self._reader.has_only_text:
            self._learn(chunk, event.text)
        return events

    @override
    def finish(self) -> list[Event]:
        self._is_learned = False  # nothing comes after the end
        return super().finish()

    def _texts(self, chunk: bytes) -> list[str]:
        """Return the texts of chunks that have this head and tail; none if anything else is among them."""
        if not chunk.startswith(self._head) or not chunk.endswith(self._tail) or len(chunk) > _MOST:
            return []
        strings = chunk[len(self._head) - 1 : 1 - len(self._tail)].split(self._between)
        try:
            texts = list(map(_STRING, strings))
        except UNREADABLE:
            return []
        return [] if "" in texts else texts

    def _learn(self, chunk: bytes, text: str) -> None:
        """Confirm the guess that an earlier chunk led to, or make one from this chunk."""
        if self._head and self._texts(chunk) == [text]:
            self._is_learned, self._trials = True, _TRIALS
            return
        self._trials -= 1
        self._head = b""
        quoted = b'"%b"' % text.encode("utf-8", "surrogatepass")
        # Without escapes each string of the chunk is written as it is, so the only one that equals the text is the one
        # that it was read from.
        if b"\\" not in chunk and chunk.count(quoted) == 1:
            start = chunk.index(quoted) + 1
            self._head, self._tail = chunk[:start], chunk[start + len(quoted) - 2 :]
            self._between = self._tail[1:] + self._head[:-1]

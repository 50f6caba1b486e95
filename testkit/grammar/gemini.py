r"""Gemini, `generateContent` and `streamGenerateContent`.

    data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hm","thought":true}]},"index":0}],
           "modelVersion":"m","responseId":"r"}
    data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
           "finishReason":"STOP","index":0}],"usageMetadata":{…},"modelVersion":"m","responseId":"r"}

Nothing but `data: ` lines: google-genai and Gemini CLI read a comment or an event name as broken JSON. Calls come
whole. Without `alt=sse` the same chunks are one JSON array. `{"error":{"code","message","status"}}` may be the last
chunk.
"""

import re

from testkit.grammar.frames import body, decoded, sse
from testkit.grammar.seen import Notes, Seen, SeenCall
from testkit.grammar.shape import Obj, expect, fresh, items, obj, parse

_BAD_CALL = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
_FINISH = _BAD_CALL | frozenset(
    {
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "OTHER",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MALFORMED_RESPONSE",
    }
)
_OUTPUT = ("candidatesTokenCount", "thoughtsTokenCount")
_COUNTS = ("promptTokenCount", "toolUsePromptTokenCount", *_OUTPUT)


def read_stream(data: bytes) -> Seen:
    """Judge a streamed response, as server-sent events or as one array."""
    machine = _Machine()
    for chunk in _array(data) if data.startswith(b"[") else _events(data):
        machine.feed(chunk)
    return machine.finish()


def read_whole(data: bytes) -> Seen:
    """Judge a response that was not streamed."""
    machine, whole = _Machine(), body(data)
    expect("error" not in whole.fields, "body is an error")
    machine.feed(whole)
    return machine.finish()


def _array(data: bytes) -> list[Obj]:
    chunks = items(parse(decoded(data), "body"), "body")
    return [obj(chunk, f"chunk {number}") for number, chunk in enumerate(chunks)]


def _events(data: bytes) -> list[Obj]:
    chunks: list[Obj] = []
    for number, frame in enumerate(sse(data, comments=False)):
        where = f"chunk {number}"
        expect(frame.event == "", f"{where} has the event name {frame.event!r}")
        chunks.append(obj(parse(frame.data, where), where))
    return chunks


class _Machine:
    def __init__(self) -> None:
        self._notes = Notes()
        self._head: tuple[str, ...] = ()
        self._ids: set[str] = set()

    def feed(self, chunk: Obj) -> None:
        expect(not self._notes.stop and not self._notes.error, f"{chunk.where} comes after the end")
        if "error" in chunk.fields:
            self._notes.error = _error(chunk)
            return
        chunk.only("candidates", "usageMetadata", "modelVersion", "responseId", "createTime")
        head = (chunk.ident("responseId"), chunk.word("modelVersion"))
        expect(self._head in ((), head), f"{chunk.where}: responseId or modelVersion changed: {self._head} to {head}")
        self._head = head
        self._candidate(chunk)
        if "usageMetadata" in chunk.fields:
            self._notes.usage = _usage(chunk.obj("usageMetadata"))

    def finish(self) -> Seen:
        expect(bool(self._notes.stop or self._notes.error), "the stream ends without a finishReason")
        return self._notes.seal()

    def _candidate(self, chunk: Obj) -> None:
        candidates = chunk.objs("candidates")
        expect(len(candidates) == 1, f"{chunk.at('candidates')} has {len(candidates)} entries, not one")
        candidate = candidates[0]
        candidate.only("content", "finishReason", "finishMessage", "index", "safetyRatings")
        expect(candidate.fields.get("index", 0) == 0, f"{candidate.at('index')} is not 0")
        ends = "finishReason" in candidate.fields
        if "content" in candidate.fields or not ends:
            self._content(candidate.obj("content"))
        if ends:
            self._finish_reason(candidate)
            chunk.obj("usageMetadata")

    def _content(self, content: Obj) -> None:
        content.one_of("role", ("model",))
        parts = content.objs("parts")
        expect(bool(parts), f"{content.at('parts')} is empty")
        for part in parts:
            self._part(part)

    def _part(self, part: Obj) -> None:
        seal = _signature(part) if "thoughtSignature" in part.fields else ""
        if "functionCall" in part.fields:
            part.only("functionCall", "thoughtSignature")
            self._notes.call_began()
            self._notes.call(self._call(part.obj("functionCall")))
            self._notes.signature(seal)
            return
        part.only("text", "thought", "thoughtSignature")
        if "thought" in part.fields and part.flag("thought"):
            self._notes.reasoning(part.text("text"), seal)
        else:
            self._notes.text(part.text("text"))
            self._notes.signature(seal)

    def _call(self, call: Obj) -> SeenCall:
        call.only("id", "name", "args")
        id_ = fresh(call.ident("id"), self._ids, call.at("id")) if "id" in call.fields else ""
        return SeenCall(id_, call.word("name"), call.obj("args").fields)

    def _finish_reason(self, candidate: Obj) -> None:
        self._notes.stop = candidate.one_of("finishReason", _FINISH)
        broken = self._notes.calls and self._notes.stop in _BAD_CALL
        expect(not broken, f"{candidate.at('finishReason')} is {self._notes.stop}, but there are calls")


def _signature(part: Obj) -> str:
    """Return the seal; google-genai refuses a response whose seal is not base64, of either alphabet."""
    seal = part.word("thoughtSignature")
    fits = re.fullmatch(r"[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9_-]+={0,2}", seal) is not None
    expect(fits and len(seal.rstrip("=")) % 4 != 1, f"{part.at('thoughtSignature')} is not base64: {seal!r:.80}")
    return seal


def _usage(usage: Obj) -> tuple[int, int]:
    counts = {key: usage.number(key) for key in _COUNTS if key in usage.fields or key in {_COUNTS[0], _OUTPUT[0]}}
    expect(usage.number("totalTokenCount") == sum(counts.values()), f"{usage.at('totalTokenCount')} is not the sum")
    wrote = sum(counts.get(key, 0) for key in _OUTPUT)
    return sum(counts.values()) - wrote, wrote


def _error(chunk: Obj) -> str:
    chunk.only("error")
    error = chunk.obj("error")
    error.number("code")
    error.word("status")
    return error.word("message")

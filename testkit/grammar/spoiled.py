"""Bad bytes and bad bodies, each a good sample with one thing spoiled, and what its judge must report.

A row of a table has the sample's name, the change, and a pattern of the complaint.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

Mutation: TypeAlias = Callable[[list[bytes]], list[bytes]]


def cut(data: bytes) -> list[bytes]:
    """Cut a response into its frames or lines."""
    return re.findall(rb".*?\n\n", data, re.DOTALL) or data.splitlines(keepends=True)


def recount(frames: list[bytes]) -> list[bytes]:
    """Renumber the sequence numbers of frames, after some were moved."""
    count = rb'"sequence_number":\d+'
    return [re.sub(count, b'"sequence_number":%d' % number, frame) for number, frame in enumerate(frames)]


def edit(at: int, old: str, new: str) -> Mutation:
    def mutate(frames: list[bytes]) -> list[bytes]:
        assert old.encode() in frames[at], frames[at]
        frames[at] = frames[at].replace(old.encode(), new.encode(), 1)
        return frames

    return mutate


def everywhere(old: str, new: str) -> Mutation:
    def mutate(frames: list[bytes]) -> list[bytes]:
        assert old.encode() in b"".join(frames)
        return [frame.replace(old.encode(), new.encode()) for frame in frames]

    return mutate


def drop(at: int) -> Mutation:
    return lambda frames: recount([frame for frame in frames if frame is not frames[at]])


def twice(at: int) -> Mutation:
    return again(at, at)


def again(at: int, after: int) -> Mutation:
    def mutate(frames: list[bytes]) -> list[bytes]:
        frames.insert(after % len(frames) + 1, frames[at])
        return recount(frames)

    return mutate


def instead(at: int, frame: bytes) -> Mutation:
    return lambda frames: recount([*frames[:at], frame, *frames[at + 1 :]])


def both(first: Mutation, second: Mutation) -> Mutation:
    return lambda frames: second(first(frames))


def swap(one: int, other: int) -> Mutation:
    def mutate(frames: list[bytes]) -> list[bytes]:
        frames[one], frames[other] = frames[other], frames[one]
        return recount(frames)

    return mutate


def tail(more: bytes) -> Mutation:
    return lambda frames: [*frames, more]


def short(count: int) -> Mutation:
    return lambda frames: [b"".join(frames)[:-count]]


LINES: list[tuple[Mutation, str]] = [
    (lambda frames: [frames[0].replace(b'"m"', b'"\xff"'), *frames[1:]], "not UTF-8"),
    (everywhere("\n", "\r\n"), "raw line separator"),
    (everywhere('"m"', '"m\u2028"'), "raw line separator"),
    (short(1), "complete frame|inside a line"),
    (edit(0, '{"', '{"a":1,"a":1,"'), "a key comes twice"),
    (edit(0, '{"', '{"a":NaN,"'), "NaN is no JSON"),
    (edit(0, '{"', '{"a":"\\ud800","'), "surrogates"),
    (edit(0, '{"', '{a:1,"'), "is not JSON"),
]
EVENTS: list[tuple[Mutation, str]] = [
    (tail(b"\n"), "complete frame"),
    (short(2), "inside a line"),
    (edit(0, "data: ", "id: 1\ndata: "), "no line of ours"),
    (edit(0, "data: ", "data:"), "no line of ours"),
    (edit(0, "data: ", "data: {}\ndata: "), "second line of data"),
    (edit(0, "data: ", "event: x\n\ndata: "), "event without data|name may not stand here"),
    (edit(0, "\n\n", "\n: x\n\n"), "comment may not stand here"),
]
WHOLES: dict[str, list[tuple[str, Mutation, str]]] = {
    "openai_chat": [
        ("two calls", edit(0, '"chat.completion"', '"chat.completion.chunk"'), "not one of"),
        ("two calls", edit(0, "chatcmpl-1", "1"), "not an id"),
        ("two calls", edit(0, '"created":1', '"created":"1"'), "not a count"),
        ("two calls", edit(0, '"refusal":null,', ""), "refusal is missing"),
        ("two calls", edit(0, '"content":"Both. ",', ""), "content is missing"),
        ("two calls", edit(0, '"logprobs":null,', ""), "logprobs is missing"),
        ("two calls", edit(0, "call_2", "call_1"), "used before"),
        ("two calls", edit(0, '"arguments":"{', '"arguments":"'), "is not JSON"),
        ("two calls", edit(0, '_reason":"tool_calls"', '_reason":"stop"'), "with calls"),
        ("text", edit(0, '"refusal"', '"tool_calls":[],"refusal"'), "tool_calls is empty"),
        ("text", edit(0, '"Hello, you."', "null"), "there is no call"),
        ("text", edit(0, '"usage"', '"used"'), "usage is missing"),
        ("text", edit(0, '"role":"assistant"', '"role":"model"'), "not one of"),
        ("text", edit(0, '"total_tokens"', '"prompt_tokens_details":{},"total_tokens"'), "cached_tokens is missing"),
    ],
    "openai_responses": [
        ("two calls", edit(0, '"object":"response"', '"object":"list"'), "not one of"),
        ("two calls", edit(0, '"completed","output":', '"in_progress","output":'), "not one of"),
        ("two calls", edit(0, '"completed","output":', '"incomplete","output":'), "not an object"),
        ("two calls", edit(0, '"parallel_tool_calls":true,', ""), "parallel_tool_calls is missing"),
        ("two calls", edit(0, '"tools":[],', ""), "tools is missing"),
        ("two calls", edit(0, '"temperature":1.0', '"temperature":"1"'), "not a number"),
        ("two calls", edit(0, '"annotations":[],', ""), "annotations is missing"),
        ("two calls", edit(0, '"call_id":"call_1",', ""), "call_id is missing"),
        ("two calls", edit(0, '"call_id":"call_2"', '"call_id":"call_1"'), "used before"),
        ("two calls", edit(0, '"id":"fc_2"', '"id":"call_2"'), "not an id"),
        ("two calls", edit(0, '"cached_tokens":0,', ""), "cached_tokens is missing"),
        ("two calls", edit(0, '"type":"output_text"', '"type":"text"'), "not one of"),
        ("two calls", edit(0, '"output":[', '"output":[],"outputs":['), "output is empty"),
        ("two calls", edit(0, '"created_at":1', '"created_at":"1"'), "not a count"),
        ("two calls", edit(0, '"model":"m"', '"model":""'), "model is empty"),
        ("two calls", edit(0, '"tool_choice":"auto"', '"tool_choice":null'), "not an object"),
        ("two calls", edit(0, '"instructions":null', '"instructions":{}'), "not a string"),
        ("two calls", edit(0, '"metadata":{}', '"metadata":[]'), "not an object"),
        ("two calls", edit(0, '"truncation":"disabled"', '"truncation":""'), "truncation is empty"),
        ("two calls", edit(0, '"error":null', '"error":{}'), "not null"),
        ("two calls", edit(0, '"incomplete_details":null', '"incomplete_details":{}'), "not null"),
        ("two calls", edit(0, '"role":"assistant",', ""), "role is missing"),
        ("two calls", edit(0, '"content":[', '"content":[],"more":['), "content is empty"),
        ("two calls", edit(0, '"logprobs":[]', '"logprobs":null'), "not an array"),
        ("two calls", edit(0, '"name":"now"', '"name":""'), "name is empty"),
        ("two calls", edit(0, '"reasoning_tokens":0', '"text_tokens":0'), "reasoning_tokens is missing"),
        ("namespace", edit(0, '"agents"', '""'), "namespace is empty"),
        ("reasoning", edit(0, '"summary_text"', '"text"'), "not one of"),
        ("reasoning", edit(0, '"summary"', '"content":[{"type":"text","text":""}],"summary"'), "not one of"),
        ("reasoning", edit(0, '"c2lnbmVk"', '""'), "encrypted_content is empty"),
    ],
    "anthropic": [
        ("two calls", edit(0, '"type":"message"', '"type":"completion"'), "not one of"),
        ("two calls", edit(0, '"role":"assistant",', ""), "role is missing"),
        ("two calls", edit(0, '"model":"m",', ""), "model is missing"),
        ("two calls", edit(0, '"stop_sequence":null,', ""), "stop_sequence is missing"),
        ("two calls", edit(0, '_reason":"tool_use"', '_reason":null'), "not a string"),
        ("two calls", edit(0, '"input":{"zone":"CET"}', '"input":"{}"'), "not an object"),
        ("two calls", edit(0, '"id":"call_2"', '"id":"call_1"'), "used before"),
        ("two calls", edit(0, '"input_tokens":4,', ""), "input_tokens is missing"),
        ("reasoning", edit(0, ',"signature":"c2lnbmVk"', ""), "signature is missing"),
        ("reasoning", edit(0, '"thinking","thinking"', '"redacted_thinking","thinking"'), "data is missing"),
        ("reasoning", edit(0, '"thinking","thinking"', '"redacted_thinking","data":"","thinking"'), "data is empty"),
    ],
    "gemini": [
        ("two calls", edit(0, '"finishReason":"STOP"', '"finishMessage":"x"'), "without a finishReason"),
        ("two calls", edit(0, '"candidates":[', '"candidates":[],"all":['), "unknown keys"),
        ("two calls", edit(0, '"args":{"zone":"CET"}', '"args":null'), "not an object"),
        ("two calls", edit(0, '"responseId":"r-1"', '"responseId":""'), "not an id"),
        ("two calls", edit(0, '"promptTokenCount":7,', ""), "promptTokenCount is missing"),
        ("two calls", lambda _: [b'{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}'], "is an error"),
    ],
    "ollama": [
        ("two calls", edit(0, '"done":true', '"done":false'), "done is false"),
        ("two calls", edit(0, '"done_reason":"stop",', ""), "done_reason is missing"),
        ("two calls", edit(0, '"role":"assistant",', ""), "role is missing"),
        ("two calls", edit(0, '"arguments":{"zone":"CET"}', '"arguments":"{}"'), "not an object"),
        ("two calls", edit(0, '"eval_count":5,', ""), "eval_count is missing"),
        ("two calls", lambda _: [b'{"error":"x"}'], "is an error"),
    ],
}

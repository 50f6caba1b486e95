"""The judges of the wires, judged: each takes good responses and refuses a bad one for each of its rules."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from testkit.grammar import WIRES, GrammarError, Seen, read_stream, read_whole, samples, spoiled, spoiled_streams
from testkit.grammar.samples import SAMPLES, USAGE, Sample
from testkit.grammar.spoiled import Mutation, both, cut, edit, recount

STREAMS: dict[str, Callable[[Sample], bytes]] = {
    "openai_chat": samples.chat_stream,
    "openai_responses": samples.responses_stream,
    "anthropic": samples.anthropic_stream,
    "gemini": samples.gemini_stream,
    "ollama": samples.ollama_stream,
}
WHOLES: dict[str, Callable[[Sample], bytes]] = {
    "openai_chat": samples.chat_whole,
    "openai_responses": samples.responses_whole,
    "anthropic": samples.anthropic_whole,
    "gemini": samples.gemini_whole,
    "ollama": samples.ollama_whole,
}
STOPS = {  # without calls, with calls, after an error
    "openai_chat": ("stop", "tool_calls", ""),
    "openai_responses": ("completed", "completed", "failed"),
    "anthropic": ("end_turn", "tool_use", ""),
    "gemini": ("STOP", "STOP", ""),
    "ollama": ("stop", "stop", ""),
}
ERROR_EVENT = samples.frame(
    {"type": "error", "sequence_number": 0, "code": None, "message": "overloaded", "param": None}, "error"
)
SIGNED = {"openai_responses", "anthropic", "gemini"}
MORE = {"openai_chat": {"custom"}, "openai_responses": {"custom", "namespace", "search"}}
GOOD = [
    (wire, name)
    for wire in WIRES
    for name in SAMPLES
    if name not in {"custom", "namespace", "search"} or name in MORE.get(wire, ())
]


def expected(wire: str, sample: Sample) -> Seen:
    """Say what a client sees of a sample; without its usage."""
    order = ["reasoning"] * bool(sample.reasoning) + ["text"] * bool(sample.text) + ["call"] * len(sample.calls)
    return Seen(
        text=sample.text,
        reasoning=sample.reasoning,
        signatures=(sample.signature,) if sample.signature and wire in SIGNED else (),
        calls=sample.calls,
        stop=STOPS[wire][2 if sample.error else bool(sample.calls)],
        error=sample.error,
        usage=None,
        order=tuple(order),
    )


@pytest.mark.parametrize(("wire", "name"), GOOD)
def test_a_good_stream_is_seen_as_it_was_meant(wire: str, name: str) -> None:
    seen = read_stream(wire, STREAMS[wire](SAMPLES[name]))
    assert replace(seen, usage=None) == expected(wire, SAMPLES[name])
    assert SAMPLES[name].error or seen.usage == USAGE


@pytest.mark.parametrize(("wire", "name"), [(wire, name) for wire, name in GOOD if name != "error"])
def test_a_good_body_is_seen_as_it_was_meant(wire: str, name: str) -> None:
    seen = read_whole(wire, WHOLES[wire](SAMPLES[name]))
    assert replace(seen, usage=None) == expected(wire, SAMPLES[name])
    assert seen.usage == USAGE


CUT_SHORT = [
    ("openai_chat", "length", edit(9, '"tool_calls"', '"length"')),
    ("anthropic", "max_tokens", edit(14, '"tool_use"', '"max_tokens"')),
    ("gemini", "MAX_TOKENS", edit(4, '"STOP"', '"MAX_TOKENS"')),
    ("ollama", "length", edit(5, '"stop"', '"length"')),
]


@pytest.mark.parametrize(("wire", "stop", "change"), CUT_SHORT)
def test_a_turn_that_was_cut_short_may_have_calls(wire: str, stop: str, change: Mutation) -> None:
    seen = read_stream(wire, b"".join(change(cut(STREAMS[wire](SAMPLES["two calls"])))))
    assert (seen.stop, seen.calls) == (stop, SAMPLES["two calls"].calls)


def test_an_incomplete_response_says_why() -> None:
    stream = samples.responses_stream(SAMPLES["two calls"]).replace(b"response.completed", b"response.incomplete")
    head, end = stream.rsplit(b"event: ", 1)
    end = end.replace(b'"completed","output"', b'"incomplete","output"')
    end = end.replace(b'"incomplete_details":null', b'"incomplete_details":{"reason":"max_output_tokens"}')
    assert read_stream("openai_responses", head + b"event: " + end).stop == "max_output_tokens"


def test_anthropic_arguments_without_any_piece_are_an_empty_object() -> None:
    frames = cut(samples.anthropic_stream(SAMPLES["two calls"]))
    assert read_stream("anthropic", b"".join(frames[:7] + frames[9:])).calls[0].arguments == {}


def test_a_stop_sequence_is_told() -> None:
    end = both(edit(-2, "end_turn", "stop_sequence"), edit(-2, '"stop_sequence":null', '"stop_sequence":"###"'))
    assert read_stream("anthropic", b"".join(end(cut(samples.anthropic_stream(SAMPLES["text"]))))).text == "Hello, you."


def test_redacted_thinking_is_a_seal_without_text() -> None:
    block = b'"content":[{"type":"redacted_thinking","data":"xyz"},'
    seen = read_whole("anthropic", samples.anthropic_whole(SAMPLES["text"]).replace(b'"content":[', block))
    assert (seen.signatures, seen.reasoning, seen.order) == (("xyz",), "", ("reasoning", "text"))


def test_gemini_streams_also_come_as_one_array() -> None:
    for name in ("text", "two calls", "reasoning", "error"):
        assert read_stream("gemini", samples.gemini_array(SAMPLES[name])) == read_stream(
            "gemini", samples.gemini_stream(SAMPLES[name])
        )


def test_a_stream_may_fail_with_an_error_event() -> None:
    frames = [*cut(samples.responses_stream(SAMPLES["error"]))[:5], ERROR_EVENT]
    seen = read_stream("openai_responses", b"".join(recount(frames)))
    assert (seen.error, seen.text, seen.stop) == ("overloaded", "He", "")


def test_reasoning_text_needs_no_part_around_it() -> None:
    stream = samples.responses_stream(SAMPLES["reasoning"])
    for old, new in (("reasoning_summary_text", "reasoning_text"), ("summary_text", "reasoning_text")):
        stream = stream.replace(old.encode(), new.encode())
    stream = stream.replace(b"summary_index", b"content_index").replace(b'"summary":[]', b'"summary":[],"content":[]')
    stream = stream.replace(b'"summary":[{', b'"summary":[],"content":[{')
    bare = recount([piece for piece in cut(stream) if b"event: response.reasoning_summary_part" not in piece])
    assert read_stream("openai_responses", b"".join(bare)).reasoning == "Let me see"


def test_a_call_that_an_error_cut_is_not_seen_as_one() -> None:
    for wire, frame in (("openai_chat", 7), ("anthropic", 11), ("openai_responses", 15)):
        end = cut(STREAMS[wire](SAMPLES["error"]))[-1] if wire != "openai_responses" else ERROR_EVENT
        frames = recount([*cut(STREAMS[wire](SAMPLES["two calls"]))[: frame + 1], end])
        seen = read_stream(wire, b"".join(frames))
        assert (seen.calls, seen.order, seen.error) == ((samples.NOW,), ("text", "call", "call"), "overloaded")


@pytest.mark.parametrize("wire", WIRES)
def test_blank_lines_and_comments_between_events_are_fine_where_clients_skip_them(wire: str) -> None:
    frames = cut(STREAMS[wire](SAMPLES["two calls"]))
    fillers = {"gemini": b"\n", "ollama": b""}
    filled = b"".join(fillers.get(wire, b": x\n\n\n") + frame for frame in frames)
    assert read_stream(wire, filled) == read_stream(wire, b"".join(frames))


def rows(table: dict[str, list[tuple[str, Mutation, str]]]) -> list[tuple[str, str, Mutation, str]]:
    return [(wire, *row) for wire in WIRES for row in table[wire]]


@pytest.mark.parametrize(("wire", "name", "spoil", "complaint"), rows(spoiled_streams.STREAMS))
def test_a_bad_stream_is_refused(wire: str, name: str, spoil: Mutation, complaint: str) -> None:
    frames = cut(STREAMS[wire](SAMPLES[name]))
    with pytest.raises(GrammarError, match=complaint):
        read_stream(wire, b"".join(spoil(frames)))


@pytest.mark.parametrize(("wire", "name", "spoil", "complaint"), rows(spoiled.WHOLES))
def test_a_bad_body_is_refused(wire: str, name: str, spoil: Mutation, complaint: str) -> None:
    with pytest.raises(GrammarError, match=complaint):
        read_whole(wire, b"".join(spoil([WHOLES[wire](SAMPLES[name])])))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("spoil", "complaint"), spoiled.LINES)
def test_bytes_that_are_no_lines_of_json_are_refused(wire: str, spoil: Mutation, complaint: str) -> None:
    with pytest.raises(GrammarError, match=complaint):
        read_stream(wire, b"".join(spoil(cut(STREAMS[wire](SAMPLES["text"])))))


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "ollama"])
@pytest.mark.parametrize(("spoil", "complaint"), spoiled.EVENTS)
def test_bytes_that_are_no_events_are_refused(wire: str, spoil: Mutation, complaint: str) -> None:
    with pytest.raises(GrammarError, match=complaint):
        read_stream(wire, b"".join(spoil(cut(STREAMS[wire](SAMPLES["text"])))))


@pytest.mark.parametrize("wire", WIRES)
def test_no_prefix_of_a_stream_is_a_stream(wire: str) -> None:
    stream = STREAMS[wire](SAMPLES["two calls"])
    for end in range(len(stream)):
        with pytest.raises(GrammarError):
            read_stream(wire, stream[:end])

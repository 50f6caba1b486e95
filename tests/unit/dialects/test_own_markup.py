"""Files that contain the markup of the calls that write them: delivered whole, or refused with a complaint (P2)."""

import json
from collections import Counter
from random import Random

import pytest

from testkit.field import READINGS, FieldCase, Verdict, field_cases
from testkit.own_markup import FORMS, TOOLS, Form, Written, content, proofs
from testkit.splits import at_random, by_characters
from toolspeak.dialects import load
from toolspeak.dialects.core.settle import LOOK_AHEAD, MOST_WAITS, TaggedCall
from toolspeak.ir.event import Discarded, Event, TextDelta, Why, raw_of
from toolspeak.ir.message import Call
from toolspeak.ir.turn import Turn, fold

MESSAGES = 1_400
MOST_WRONG, LEAST_RIGHT = 0.002, 0.95
"""A few files leave two readings that are both consistent to the end of the message."""

CALL = "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>"


def read(dialect: str, *pieces: str) -> list[Event]:
    """Read a text that comes in pieces."""
    reader = load(dialect).reader(TOOLS)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


def calls(turn: Turn) -> list[tuple[str, object]]:
    """Return names and arguments."""
    return [(call.name, json.loads(call.arguments)) for call in turn.calls]


def verdict(written: Written) -> str:
    """Judge the reading of one message."""
    turn = fold(read(written.form.dialect, written.text))
    got, rest = calls(turn), iter(written.calls)
    if got == written.calls:
        return "right"
    return "refused" if all(any(call == meant for meant in rest) for call in got) else "wrong"


def test_a_delivered_argument_is_what_the_model_wrote_p2() -> None:
    """P2: values that hold closers, openers, calls, sections, fences and blank lines, in every tagged dialect."""
    counts = Counter(map(verdict, proofs(MESSAGES)))
    assert counts["wrong"] <= MOST_WRONG * MESSAGES, counts
    assert counts["right"] >= LEAST_RIGHT * MESSAGES, counts


def test_no_cut_changes_what_such_a_message_gives_p1() -> None:
    for written in proofs(140):
        for dialect in (written.form.dialect, "any"):
            events = read(dialect, written.text)
            assert "".join(map(raw_of, events)) == written.text
            for pieces in (by_characters(written.text), *at_random(written.text, 3, written.seed)):
                cut = read(dialect, *pieces)
                assert fold(cut) == fold(events), (written.seed, pieces)
                assert "".join(map(raw_of, cut)) == written.text


@pytest.mark.parametrize("form", [form for form in FORMS if load(form.dialect).writer], ids=lambda form: form.dialect)
def test_a_writer_writes_such_files_so_that_its_reader_reads_them_back(form: Form) -> None:
    writer = load(form.dialect).writer
    assert writer is not None
    for seed in range(200):
        file = content(form, Random(f"writer {seed}"))
        arguments = {"path": "a.md", "content": file}
        text = writer.write_calls((Call("c", "write_file", json.dumps(arguments)),), TOOLS)
        assert calls(fold(read(form.dialect, text))) == [("write_file", arguments)], text


@pytest.mark.parametrize("case", field_cases(), ids=lambda case: case.id)
def test_no_output_from_the_field_becomes_a_wrong_call_p2(case: FieldCase) -> None:
    """P2, on what users have reported; `just field` has the other verdicts."""
    for reading in READINGS:
        turn = case.read(case.dialect_of(reading), (case.text,))
        assert case.verdict(turn) is not Verdict.WRONG, calls(turn)


# when a call leaves


def test_a_call_leaves_with_the_next_opener() -> None:
    reader = load("qwen_xml").reader(TOOLS)
    assert not any(isinstance(event, TextDelta) for event in reader.feed(CALL + "\n"))
    assert len(fold(reader.feed(CALL[:12])).calls) == 1


def test_text_after_a_call_comes_unaltered_when_the_answer_ends() -> None:
    reader = load("qwen_xml").reader(TOOLS)
    before = fold(reader.feed(f"First.\n{CALL}\nIt lists <b>files</b>.\n"))
    assert (before.text, before.calls) == ("First.\n", ())
    after = fold(reader.finish())
    assert calls(after) == [("bash", {"command": "ls"})]
    assert after.text.strip() == "It lists <b>files</b>."


def test_a_forged_result_ends_the_wait() -> None:
    reader = load("qwen_xml").reader(TOOLS)
    turn = fold(reader.feed(f"{CALL}\nLet me see:\n<tool_response>\nx"))
    assert len(turn.calls) == 1
    assert reader.cut is Why.FORGED


@pytest.mark.parametrize(("more", "waits"), [(-1, True), (0, True), (1, False)])
def test_a_call_waits_for_a_bounded_number_of_characters_p7(more: int, waits: bool) -> None:
    reader = load("qwen_xml").reader(TOOLS)
    text = "x" * (LOOK_AHEAD + more - len("\n</tool_call>"))
    turn = fold(reader.feed(CALL + text))
    assert len(turn.calls) == (0 if waits else 1)
    assert len(turn.calls) + len(fold(reader.finish()).calls) == 1


def test_a_message_has_a_bounded_number_of_waits_p8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait reads the text to its end; with one for each call, n calls would cost n times the text."""
    looked: list[int] = []
    step = TaggedCall._step_ahead

    def counted(self: TaggedCall, text: str, pos: int, *, final: bool) -> int | None:
        looked.append(pos)
        return step(self, text, pos, final=final)

    monkeypatch.setattr(TaggedCall, "_step_ahead", counted)
    text, times = f"{CALL} then <function=x> y\n", 100
    events = read("qwen_xml", text * times)
    assert len(fold(events).calls) == times
    assert "".join(map(raw_of, events)) == text * times
    assert len(looked) <= (MOST_WAITS + 1) * times * text.count("<")


# slips of models


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("qwen_xml", CALL.replace("</parameter>", "</parameter>\n</parameter>"), [("bash", {"command": "ls"})]),
        ("qwen_xml", CALL.replace("\n</parameter>", ""), [("bash", {"command": "ls"})]),
        ("qwen_xml", CALL.replace("</function>", "</function>\n</function>"), [("bash", {"command": "ls"})]),
        (
            "invoke_xml",
            '<invoke name="edit"><parameter name="path">a</path>\n<parameter name="old">b</parameter></invoke>',
            [("edit", {"path": "a", "old": "b"})],
        ),
        (
            "minicpm",
            '<function name="bash"><param name="command"><![CDATA[<![CDATA[a]]> b]]></param></function>',
            [("bash", {"command": "<![CDATA[a]]> b"})],
        ),
        ("invoke_xml", CALL.replace("<tool_call>\n", ""), [("bash", {"command": "ls"})]),
    ],
)
def test_slips_are_forgiven_where_nothing_else_can_be_meant(
    dialect: str, text: str, expected: list[tuple[str, object]]
) -> None:
    assert calls(fold(read(dialect, text))) == expected


@pytest.mark.parametrize(
    "text",
    [
        CALL.replace("ls\n", "ls\n<function=bash>\n<parameter=command>\npwd\n"),  # whose closers are missing?
        CALL.replace("</function>", "</function>\n</parameter>\n</function>"),  # two ends, nothing between
    ],
)
def test_a_call_with_two_possible_ends_is_refused_p2(text: str) -> None:
    turn = fold(read("qwen_xml", text))
    assert not turn.calls
    assert turn.complaints


def test_the_rest_of_a_doubtful_file_is_not_read_as_calls_p5() -> None:
    """What follows a refused call may be its file: an example in it must not run."""
    text = f"{CALL.replace('ls', 'a')} x <parameter=note>\n{CALL}\n</parameter> y\n</tool_call></tool_call>"
    turn = fold(read("qwen_xml", text))
    assert not turn.calls
    assert turn.complaints


def test_blanks_without_end_do_not_keep_a_call_waiting_p7() -> None:
    reader = load("qwen_xml").reader(TOOLS)
    turn = fold(reader.feed(CALL + " " * 5_000))
    assert len(turn.calls) == 1
    assert not any(isinstance(event, Discarded) and event.why is Why.LIMIT for event in reader.finish())

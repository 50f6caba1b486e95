"""Fragments of native calls: what belongs together, what is another call, what was cut (P3), limits (P7), time (P8)."""

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallRejected, CallStarted, Discarded, Event, Why
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Role
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.wires.shared.call_deltas import MAX_SIZE, CallDeltas
from toolspeak.wires.shared.calls import FreshIds
from toolspeak.wires.shared.tools import ToolNames

CALL_SIZE = 1024
"""What a call without arguments counts for."""


def fresh() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def new_deltas(*names: str, known_ids: tuple[str, ...] = ()) -> CallDeltas:
    history = Message(Role.ASSISTANT, tuple(Call(id, "f", "{}") for id in known_ids))
    return CallDeltas(ToolNames(names or ("f", "g"), 64), FreshIds(Request("m", (history,)), fresh()))


def piece(arguments: Json = None, name: Json = None, **more: Json) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": arguments}
    return {**more, "function": {key: value for key, value in function.items() if value is not None}}


def events_of(*fragments: JsonObject, problem: Problem | None = None) -> list[Event]:
    """Feed one fragment a delta, and finish."""
    deltas = new_deltas()
    events = [event for fragment in fragments for event in deltas.feed([fragment])]
    return events + deltas.finish(problem)


def calls_of(*fragments: JsonObject) -> list[tuple[str, str]]:
    """Return the names and arguments of the calls that ended well."""
    return [(call.name, call.arguments) for call in fold(events_of(*fragments)).calls]


# What belongs together


def test_a_call_is_told_as_it_grows() -> None:
    assert events_of(piece("", "f", index=0, id="a"), piece('{"x"', index=0), piece(": 1}", index=0)) == [
        CallStarted("a", "f", "a"),
        ArgsDelta("a", '{"x"'),
        ArgsDelta("a", ": 1}"),
        CallEnded("a"),
    ]


def test_a_call_without_arguments_has_none() -> None:
    nothing: list[Json] = [None, "", {}, []]
    assert [calls_of(piece(empty, "f", index=0)) for empty in nothing] == [[("f", "{}")]] * 4


def test_whether_there_was_a_call_is_known() -> None:
    deltas = new_deltas()
    assert not deltas.any
    deltas.feed([piece("", "f")])
    assert deltas.any


def test_an_index_that_is_used_again_with_another_name_is_another_call() -> None:
    fragments = [piece('{"x": 1}', "f", index=0), piece('{"y": 2}', "g", index=0)]
    assert calls_of(*fragments) == [("f", '{"x": 1}'), ("g", '{"y": 2}')]


def test_an_index_that_is_used_again_with_another_name_and_id_is_another_call() -> None:
    fragments = [piece('{"x": 1}', "f", index=0, id="a"), piece("", "g", index=0, id="b"), piece('{"y": 2}', index=0)]
    assert calls_of(*fragments) == [("f", '{"x": 1}'), ("g", '{"y": 2}')]


def test_an_id_that_is_used_again_with_another_name_is_another_call() -> None:
    fragments = [piece('{"x": 1}', "f", id="a"), piece('{"y": 2}', "g", id="a")]
    assert calls_of(*fragments) == [("f", '{"x": 1}'), ("g", '{"y": 2}')]
    assert [event.id for event in events_of(*fragments) if isinstance(event, CallStarted)] == ["a", "fresh0"]


def test_another_id_with_a_name_is_another_call_even_before_the_first_is_whole() -> None:
    fragments = [piece('{"x": ', "f", index=0, id="a"), piece("{}", "f", index=0, id="b"), piece("1}", index=0, id="a")]
    assert calls_of(*fragments) == [("f", '{"x": 1}'), ("f", "{}")]


def test_ids_that_change_with_each_delta_and_have_no_name_are_one_call() -> None:
    fragments = [piece("", "f", index=0, id="a"), piece('{"x"', index=0, id="b"), piece(": 1}", index=0, id="c")]
    assert calls_of(*fragments) == [("f", '{"x": 1}')]
    assert events_of(*fragments)[0] == CallStarted("a", "f", "a")


def test_a_name_that_is_repeated_is_not_doubled() -> None:
    fragments = [piece(text, "f", index=0, id="a") for text in ("", '{"x"', ": 1}")]
    assert calls_of(*fragments) == [("f", '{"x": 1}')]


def test_a_name_in_pieces_is_put_together() -> None:
    deltas = new_deltas("get_weather", "get")
    events = deltas.feed([piece("", "get_", index=0), piece("", "wea", index=0), piece("{}", "ther", index=0)])
    assert [call.name for call in fold(events + deltas.finish(None)).calls] == ["get_weather"]


def test_a_call_that_nobody_offers_is_told_too() -> None:
    assert calls_of(piece("{}", "unknown", index=0)) == [("unknown", "{}")]


def test_fragments_without_an_index_belong_to_the_last_call() -> None:
    fragments = [piece('{"x": 1}', "f", id="a"), piece('{"y"', "f", id="b"), piece(": 2}")]
    assert calls_of(*fragments) == [("f", '{"x": 1}'), ("f", '{"y": 2}')]


def test_interleaved_calls_grow_each_for_itself() -> None:
    fragments = [piece("", "f", index=0, id="a"), piece("", "g", index=1, id="b"), piece('{"x":', index=0)]
    fragments += [piece('{"y":', index=1), piece("1}", index=0), piece("2}", index=1)]
    assert calls_of(*fragments) == [("f", '{"x":1}'), ("g", '{"y":2}')]


def test_a_name_that_the_wire_does_not_allow_comes_back_as_it_was() -> None:
    names = ToolNames(["a.b"], 64)
    deltas = CallDeltas(names, FreshIds(Request("m", ()), fresh()))
    (started,) = deltas.feed([piece("", names.out("a.b"), index=0)])
    assert started == CallStarted("fresh0", "a.b")


def test_an_id_that_is_in_use_or_of_no_use_is_replaced_and_kept_as_the_native_one() -> None:
    deltas = new_deltas(known_ids=("a", "fresh0"))
    first, second = deltas.feed([piece("", "f", index=0, id="a"), piece("", "f", index=1, id="functions.f:1")])
    assert (first, second) == (CallStarted("fresh1", "f", "a"), CallStarted("fresh2", "f", "functions.f:1"))


@pytest.mark.parametrize(
    "fragments", [None, {}, {"index": 0, "function": {"name": "f"}}, "x", 5, True, [], [None, 5, "x", []]]
)
def test_what_is_no_list_of_objects_has_no_calls(fragments: Json) -> None:
    deltas = new_deltas()
    assert deltas.feed(fragments) == []
    assert deltas.finish(None) == []
    assert not deltas.any


@pytest.mark.parametrize("odd", [{"name": 5}, {"name": ["f"]}, {}], ids=json.dumps)
def test_a_name_that_is_no_text_is_none(odd: JsonObject) -> None:
    assert calls_of({"index": 0, "function": {**odd, "arguments": "{}"}}) == [("", "{}")]


def test_a_fragment_that_says_nothing_is_no_call() -> None:
    assert calls_of({}) == []
    assert calls_of(piece('{"x":1}', "f", index=0, id="a"), piece("", index=0, id="b")) == [("f", '{"x":1}')]


def test_another_call_behind_the_arguments_keeps_its_blanks_p2() -> None:
    pieces = [piece(text, index=0) for text in ('{"x":"a', " ", 'b"}')]
    assert calls_of(piece('{"x":1}', "f", index=0), *pieces) == [("f", '{"x":1}'), ("f", '{"x":"a b"}')]


def test_arguments_that_are_sent_again_token_by_token_count_once() -> None:
    pieces = [piece(text, index=0) for text in ('{"x":', " ", '"a', " ", 'b"}')]
    assert calls_of(piece('{"x": "a b"}', "f", index=0), *pieces) == [("f", '{"x": "a b"}')]


@pytest.mark.parametrize("problem", [Problem.TRUNCATED, Problem.DISCONNECTED])
def test_what_is_cut_behind_the_arguments_makes_the_call_a_cut_one_p1_p3(problem: Problem) -> None:
    turn = fold(events_of(piece('{"x":1}{"y"', "f", index=0), problem=problem))
    assert turn.calls == ()
    assert [part.raw for part in turn.parts if isinstance(part, CallRejected)] == ['{"x":1}{"y"']


def test_text_for_a_call_that_has_ended_is_set_aside_p1() -> None:
    events = events_of(piece("{}", "f", index=0, id="a"), piece("{}", "g", index=1, id="b"), piece("oops", index=0))
    assert Discarded(Why.DEBRIS, "oops") in events


def test_an_index_may_be_written_as_text_and_ids_may_change_all_the_time() -> None:
    assert calls_of(piece('{"x"', "f", index="0"), piece(":1}", index="0")) == [("f", '{"x":1}')]
    assert calls_of(piece('{"x"', "f", id="a"), piece(":1}", id="b")) == [("f", '{"x":1}')]


def test_a_name_has_a_limit_p7() -> None:
    deltas = new_deltas()
    with pytest.raises(BadFrame):
        deltas.feed([piece(None, "n" * (MAX_SIZE + 2 * CALL_SIZE), index=0)])


@pytest.mark.parametrize("odd", [{"id": 5}, {"index": None, "id": None}, {"index": 0, "id": {}}], ids=json.dumps)
def test_an_id_that_is_no_text_is_none(odd: JsonObject) -> None:
    assert calls_of({**odd, **piece('{"x"', "f")}, {**odd, **piece(": 1}")}) == [("f", '{"x": 1}')]


# Arguments that are no text, that come again, or that are several


def test_arguments_may_be_an_object() -> None:
    assert calls_of(piece({"x": [1, "é"]}, "f", index=0)) == [("f", '{"x":[1,"é"]}')]


def test_an_object_that_comes_again_is_dropped() -> None:
    assert calls_of(piece({"x": 1}, "f", index=0), piece({"x": 1}, "f", index=0)) == [("f", '{"x":1}')]


def test_arguments_that_are_no_json_are_told_as_they_came() -> None:
    assert calls_of(piece("<x>1", "f", index=0), piece("</x>", index=0)) == [("f", "<x>1</x>")]
    assert calls_of(piece(5, "f", index=0)) == [("f", "5")]


def test_arguments_that_come_again_in_one_piece_are_dropped() -> None:
    fragments = [piece('{"x"', "f", index=0), piece(": 1}", index=0), piece('{"x": 1}', index=0)]
    assert calls_of(*fragments) == [("f", '{"x": 1}')]


def test_arguments_that_come_again_in_pieces_are_dropped() -> None:
    again = ['{"x"', ": ", "1", "}\n", ' {"x": 1}', '{"x": 1}{"x"', ": 1}"]
    assert calls_of(piece('{"x": 1}', "f", index=0), *(piece(text, index=0) for text in again)) == [("f", '{"x": 1}')]


def test_other_arguments_under_the_same_index_are_another_call_of_the_same_tool() -> None:
    fragments = [piece('{"x": 1}', "f", index=0, id="a"), piece('{"x"', index=0), piece(": 2}", index=0)]
    assert calls_of(*fragments) == [("f", '{"x": 1}'), ("f", '{"x": 2}')]
    assert [event.id for event in events_of(*fragments) if isinstance(event, CallStarted)] == ["a", "fresh0"]


def test_several_values_in_one_fragment_are_several_calls() -> None:
    calls = calls_of(piece('{"x": 1}{"x": 2}\n{"x": 2} {"x": 3}', "f", index=0))
    assert [(name, text.strip()) for name, text in calls] == [("f", f'{{"x": {number}}}') for number in (1, 2, 3)]


def test_thousands_of_values_in_one_fragment_are_as_many_calls_up_to_the_limit_p7() -> None:
    text = "".join(f'{{"x":{number}}}' for number in range(8_000))
    calls = calls_of(piece(text, "f", index=0))
    assert calls == [("f", f'{{"x":{number}}}') for number in range(8_000)]
    deltas = new_deltas()
    with pytest.raises(BadFrame):
        deltas.feed([piece("{}[]" * 4_200, "f", index=0)])


def test_nonsense_behind_complete_arguments_is_told_as_it_came() -> None:
    assert calls_of(piece('{"x": 1}} oops', "f", index=0), piece(" more", index=0)) == [("f", '{"x": 1}} oops more')]


def test_blanks_behind_complete_arguments_are_nothing() -> None:
    assert calls_of(piece('{"x": 1} \n', "f", index=0), piece("\t", index=0)) == [("f", '{"x": 1}')]


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=8), lambda inside: st.lists(inside, max_size=3), max_leaves=4
)
arguments_of_calls = st.dictionaries(st.text(max_size=4), json_values, max_size=2).map(json.dumps)


@given(st.data(), arguments_of_calls, st.booleans())
def test_however_arguments_are_cut_they_arrive_whole_p1(data: st.DataObject, text: str, again: bool) -> None:
    whole = text * (2 if again else 1)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assume(not again or all(text.strip() for text in pieces if text))
    assert calls_of(piece("", "f", index=0, id="a"), *(piece(text, index=0) for text in pieces)) == [("f", text)]


@given(st.lists(arguments_of_calls, min_size=1, max_size=3, unique=True))
def test_values_behind_each_other_are_calls_in_their_order(values: list[str]) -> None:
    assert calls_of(piece("".join(values), "f", index=0)) == [("f", value) for value in values]


# The end


def test_calls_that_are_whole_end_when_something_else_follows() -> None:
    deltas = new_deltas()
    deltas.feed([piece("{}", "f", index=0, id="a"), piece('{"x"', "f", index=1, id="b")])
    assert deltas.pause() == []
    deltas.feed([piece(": 1}", index=1)])
    assert deltas.pause() == [CallEnded("b")]
    assert deltas.finish(None) == []


def test_a_call_that_is_whole_ends_as_the_next_one_starts() -> None:
    events = events_of(piece("{}", "f", index=0, id="a"), piece("{}", "g", index=1, id="b"))
    assert [type(event) for event in events] == [CallStarted, ArgsDelta, CallEnded] * 2


def test_after_a_good_end_a_cut_call_is_told_as_it_came() -> None:
    assert events_of(piece('{"x', "f", index=0, id="a"))[-2:] == [ArgsDelta("a", '{"x'), CallEnded("a")]


@pytest.mark.parametrize("problem", [Problem.TRUNCATED, Problem.DISCONNECTED])
@pytest.mark.parametrize("arguments", ['{"x": "y', "", "[", "oops"])
def test_a_cut_call_is_rejected_with_what_came_of_it_p3(problem: Problem, arguments: str) -> None:
    events = events_of(piece(arguments, "f", index=0, id="a"), problem=problem)
    assert events[-1] == CallRejected(Complaint(problem, "f"), arguments)
    assert not any(isinstance(event, CallEnded) for event in events)
    assert fold(events).calls == ()


def test_a_limit_cuts_only_what_is_not_whole_p3() -> None:
    fragments = [piece("{}", "f", index=0, id="a"), piece('{"x"', "g", index=1, id="b")]
    turn = fold(events_of(*fragments, problem=Problem.TRUNCATED))
    assert [call.id for call in turn.calls] == ["a"]
    assert [complaint.name for complaint in turn.complaints] == ["g"]


def test_a_limit_leaves_a_last_call_that_is_whole() -> None:
    assert events_of(piece("{}", "f", index=0, id="a"), problem=Problem.TRUNCATED)[-1] == CallEnded("a")


def test_a_broken_connection_may_have_cut_even_what_looks_whole_p3() -> None:
    turn = fold(events_of(piece("{}", "f", index=0, id="a"), problem=Problem.DISCONNECTED))
    assert turn.calls == ()
    assert turn.complaints == (Complaint(Problem.DISCONNECTED, "f"),)


def test_all_open_calls_are_rejected_p3() -> None:
    fragments = [piece("{", "f", index=0, id="a"), piece("{", "g", index=1, id="b")]
    events = events_of(*fragments, problem=Problem.DISCONNECTED)
    assert [event.complaint.name for event in events if isinstance(event, CallRejected)] == ["f", "g"]


def test_a_second_end_tells_nothing() -> None:
    for problem in (None, Problem.TRUNCATED, Problem.DISCONNECTED):
        deltas = new_deltas()
        deltas.feed([piece("{", "f", index=0)])
        assert deltas.finish(problem)
        assert deltas.finish(problem) == []


# Limits


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("pieces", [1, 3])
def test_the_arguments_of_one_response_have_a_limit_p7(over: int, pieces: int) -> None:
    deltas = new_deltas()
    size = MAX_SIZE - CALL_SIZE + over
    text = '{"x":"' + "x" * (size - 8) + '"}'
    cut = size // pieces + 1
    fragments = [piece(text[start : start + cut], "f", index=0) for start in range(0, size, cut)]
    if over <= 0:
        events = [event for fragment in fragments for event in deltas.feed([fragment])] + deltas.finish(None)
        assert sum(len(event.json) for event in events if isinstance(event, ArgsDelta)) == size
        return
    deltas.feed([*fragments[:-1]])
    with pytest.raises(BadFrame, match=f"have {MAX_SIZE + 1} characters, at most {MAX_SIZE} are read"):
        deltas.feed([fragments[-1]])


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_calls_of_one_response_have_a_limit_p7(over: int) -> None:
    deltas = new_deltas()
    size = MAX_SIZE // CALL_SIZE + over
    fragments: list[Json] = [piece("", "f", index=number) for number in range(size)]
    if over <= 0:
        assert len(deltas.feed(fragments)) == size
        return
    with pytest.raises(BadFrame, match=f"at most {MAX_SIZE} are read"):
        deltas.feed(fragments)


def test_what_comes_again_counts_too_p7() -> None:
    deltas = new_deltas()
    text = '{"x":"' + "x" * (MAX_SIZE // 2) + '"}'
    deltas.feed([piece(text, "f", index=0)])
    with pytest.raises(BadFrame, match="characters"):
        deltas.feed([piece(text, index=0)])


# Time


def one_call_in_pieces(size: int) -> list[JsonObject]:
    return [piece('{"x":"', "f", index=0), *(piece("xx", index=0) for _ in range(size)), piece('"}', index=0)]


def arguments_again_in_pieces(size: int) -> list[JsonObject]:
    whole = '{"x":"' + "x" * size + '"}'
    return [piece(whole, "f", index=0), *(piece(char, index=0) for char in whole)]


def nonsense_behind_in_pieces(size: int) -> list[JsonObject]:
    return [piece("{}", "f", index=0), *(piece("oops", index=0) for _ in range(2 * size))]


def values_in_one_fragment(size: int) -> list[JsonObject]:
    return [piece("".join(f'{{"x":{number}}}' for number in range(size // 8)), "f", index=0)]


def calls_behind_each_other(size: int) -> list[JsonObject]:
    return [piece("{}", "f", index=number, id=f"c{number}") for number in range(size // 4)]


def open_calls(size: int) -> list[JsonObject]:
    opened = [piece("{", "f", index=number, id=f"c{number}") for number in range(size // 4)]
    return opened + [piece("}", index=number) for number in range(size // 4)]


@pytest.mark.parametrize(
    "make",
    [
        one_call_in_pieces,
        arguments_again_in_pieces,
        nonsense_behind_in_pieces,
        values_in_one_fragment,
        calls_behind_each_other,
        open_calls,
    ],
)
def test_twice_the_fragments_cost_about_twice_the_time_p8(make: Callable[[int], list[JsonObject]]) -> None:
    assert growth(lambda fragments: events_of(*fragments), make(10_000), make(20_000)) < BAR


def test_two_calls_with_one_id_at_two_indexes_are_two_calls() -> None:
    first = [piece("", "f", index=0, id="same"), piece('{"x":1}', index=0)]
    second = [piece("", "f", index=1, id="same"), piece('{"x"', index=1), piece(":2}", index=1)]
    assert calls_of(*first, *second) == [("f", '{"x":1}'), ("f", '{"x":2}')]

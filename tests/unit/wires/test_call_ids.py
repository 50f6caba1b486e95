"""Ids of calls (WIRE-6): never one that is in use, maps one to one that stay the same while the history grows."""

import re
from collections.abc import Iterator
from itertools import chain, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.ir.message import Call, Message, Part, Result, Role, Text, Vendor
from toolspeak.ir.quirks import IdForm
from toolspeak.ir.request import Request
from toolspeak.wires.shared.calls import FreshIds, history_calls, id_map, with_ids

FORMS = {
    IdForm.ANY: r"[A-Za-z0-9_-]{1,40}",
    IdForm.MISTRAL: r"[A-Za-z0-9]{9}",
    IdForm.KIMI: r"functions\.(?s:.*):[0-9]+",
}


def call(id: str, name: str = "f") -> Call:
    return Call(id, name, "{}")


def request(*ids: str) -> Request:
    return Request("m", (Message(Role.ASSISTANT, tuple(map(call, ids))),))


def fresh(prefix: str = "fresh") -> Iterator[str]:
    return (f"{prefix}{number}" for number in count())


# Fresh ids


def test_an_id_of_the_upstream_is_kept_where_it_can_be_used() -> None:
    ids = FreshIds(request("a"), fresh())
    assert [ids.take("call_1"), ids.take("toolu_x-9")] == ["call_1", "toolu_x-9"]


@pytest.mark.parametrize("wanted", ["", "functions.f:0", "a b", "é", "a\n", "x" * 65])
def test_an_id_that_clients_refuse_is_replaced(wanted: str) -> None:
    assert FreshIds(request(), fresh()).take(wanted) == "fresh0"


@pytest.mark.parametrize(("size", "kept"), [(63, True), (64, True), (65, False)])
def test_an_id_has_at_most_64_characters_p7(size: int, kept: bool) -> None:
    assert (FreshIds(request(), fresh()).take("x" * size) == "x" * size) is kept


def test_an_id_that_comes_twice_in_an_answer_is_replaced() -> None:
    ids = FreshIds(request(), fresh())
    assert [ids.take("a"), ids.take("a"), ids.take("")] == ["a", "fresh0", "fresh1"]


def test_an_id_that_is_in_the_request_is_replaced_id_003() -> None:
    assert FreshIds(request("call_0", "fresh0", "fresh1"), fresh()).take("call_0") == "fresh2"


@given(st.lists(st.sampled_from(["a", "b", "fresh0", "fresh1", "fresh3"])), st.lists(st.text("ab.", max_size=2)))
def test_an_id_is_never_one_of_the_request_nor_given_twice_id_003(known: list[str], wanted: list[str]) -> None:
    source = chain(known, fresh())
    ids = FreshIds(request(*known), source)
    given_out = list(map(ids.take, wanted))
    assert not set(given_out) & set(known)
    assert len(set(given_out)) == len(given_out)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", id) for id in given_out)


def test_calls_are_found_in_all_messages_in_order() -> None:
    said = Message(Role.USER, (Text("u"),))
    asked = Message(Role.ASSISTANT, (Text("t"), call("a"), call("b")))
    assert [one.id for one in history_calls((asked, said, asked))] == ["a", "b", "a", "b"]


# Maps

any_text = st.text(st.characters())
"""Halves of surrogate pairs, too."""
likely = st.text("abcXYZ019_.:", max_size=45) | st.text("0123456789abcdef", min_size=9, max_size=9)
all_calls = st.lists(st.builds(call, any_text | likely, any_text), unique_by=lambda one: one.id, max_size=8)
forms = st.sampled_from(IdForm)


@given(all_calls, forms)
def test_every_call_gets_an_id_of_its_own_in_the_form_that_the_upstream_wants_wire6(
    calls: list[Call], form: IdForm
) -> None:
    renamed = id_map(calls, form)
    assert list(renamed) == [one.id for one in calls]
    assert len(set(renamed.values())) == len(calls)
    assert all(re.fullmatch(FORMS[form], new) for new in renamed.values())


@given(all_calls, forms, st.integers(0, 8))
def test_ids_stay_the_same_while_the_history_grows_wire6(calls: list[Call], form: IdForm, cut: int) -> None:
    whole = id_map(calls, form)
    assert list(id_map(calls[:cut], form).items()) == list(whole.items())[:cut]


def test_ids_are_the_same_in_every_process_wire6() -> None:
    assert id_map([call("call_PTLP8xhu3uwZk4l3")], IdForm.MISTRAL) == {"call_PTLP8xhu3uwZk4l3": "e114a1a0c"}
    assert id_map([call("a.b")], IdForm.ANY) == {"a.b": "call_27f94754dee1c053086ccd64"}


@pytest.mark.parametrize("id", ["abcDEF123", "000000000"])
def test_mistrals_own_ids_stay_wire6(id: str) -> None:
    assert id_map([call(id)], IdForm.MISTRAL) == {id: id}


@pytest.mark.parametrize("id", ["abcDEF12", "abcDEF1234", "abcDEF12_", "abcDEF12é", "abcDEF123\n", ""])
def test_ids_that_are_not_mistrals_are_rewritten_wire6(id: str) -> None:
    (new,) = id_map([call(id)], IdForm.MISTRAL).values()
    assert new != id


@pytest.mark.parametrize(("size", "kept"), [(39, True), (40, True), (41, False)])
def test_a_history_has_no_id_over_40_characters_p7(size: int, kept: bool) -> None:
    (new,) = id_map([call("x" * size)], IdForm.ANY).values()
    assert (new == "x" * size) is kept
    assert len(new) <= 40


def test_a_rewritten_id_that_is_taken_is_rewritten_again_wire6() -> None:
    (hashed,) = id_map([call("a.b")], IdForm.MISTRAL).values()
    renamed = id_map([call(hashed), call("a.b")], IdForm.MISTRAL)
    assert renamed[hashed] == hashed
    assert re.fullmatch("[0-9a-f]{9}", renamed["a.b"])
    assert renamed["a.b"] != hashed


def test_an_id_that_a_rewritten_one_has_taken_is_rewritten_too_wire6() -> None:
    (hashed,) = id_map([call("a.b")], IdForm.MISTRAL).values()
    renamed = id_map([call("a.b"), call(hashed)], IdForm.MISTRAL)
    assert renamed["a.b"] == hashed
    assert renamed[hashed] != hashed


def test_kimis_ids_count_over_the_conversation_wire6() -> None:
    calls = [call("a", "shell"), call("b", "get_time"), call("c", "shell")]
    assert list(id_map(calls, IdForm.KIMI).values()) == [
        "functions.shell:0",
        "functions.get_time:1",
        "functions.shell:2",
    ]


def test_kimis_id_comes_back_by_the_next_turn_wire6() -> None:
    history = [call("a", "shell")]
    new = FreshIds(Request("m", (Message(Role.ASSISTANT, tuple(history)),)), fresh()).take("functions.shell:1")
    assert new == "fresh0"
    assert id_map([*history, call(new, "shell")], IdForm.KIMI)[new] == "functions.shell:1"


def test_mistrals_id_comes_back_by_the_next_turn_wire6() -> None:
    new = FreshIds(request(), fresh()).take("abcDEF123")
    assert id_map([call(new)], IdForm.MISTRAL) == {"abcDEF123": "abcDEF123"}


# In messages


def result(id: str) -> Result:
    return Result(id, (Text("x"),), "f", is_error=True, vendor=Vendor("w", {"k": 1}))


@pytest.mark.parametrize("form", [IdForm.MISTRAL, IdForm.KIMI])
def test_a_call_and_its_result_get_the_same_id_wire6(form: IdForm) -> None:
    vendor = Vendor("w", {"name": "x"})
    said = Message(Role.USER, (Text("u"),), vendor)
    asked = Message(Role.ASSISTANT, (Text("t"), call("call_1"), call("call_2")), vendor)
    answered = Message(Role.TOOL, (result("call_1"), result("call_2")))
    new_said, new_asked, new_answered = with_ids((said, asked, answered), form)
    ids = list(id_map([call("call_1"), call("call_2")], form).values())
    assert new_said == said
    assert new_asked == Message(Role.ASSISTANT, (Text("t"), call(ids[0]), call(ids[1])), vendor)
    assert new_answered == Message(Role.TOOL, (result(ids[0]), result(ids[1])))


def test_a_history_whose_ids_are_right_is_not_touched() -> None:
    history = (Message(Role.ASSISTANT, (call("call_1"),)), Message(Role.TOOL, (result("call_1"),)))
    assert with_ids(history, IdForm.ANY) is history


def test_the_id_of_a_result_of_no_call_stays() -> None:
    answered: tuple[Part, ...] = (result("other"),)
    history = (Message(Role.ASSISTANT, (call("a.b"),)), Message(Role.TOOL, answered))
    assert with_ids(history, IdForm.ANY)[1].parts == answered


# Time


@pytest.mark.parametrize("form", IdForm)
def test_twice_the_calls_cost_about_twice_the_time_p8(form: IdForm) -> None:
    size = 80_000 if form is IdForm.KIMI else 10_000
    calls = [call(f"call.{number}") for number in range(2 * size)]
    assert growth(lambda most: id_map(calls[:most], form), size, 2 * size) < BAR


def test_twice_the_fresh_ids_cost_about_twice_the_time_p8() -> None:
    def take(size: int) -> None:
        ids = FreshIds(request(*(f"fresh{number}" for number in range(size))), fresh())
        for _ in range(size):
            ids.take("call_0")

    assert growth(take, 20_000, 40_000) < BAR


def test_ids_of_results_are_in_use_too_id_003() -> None:
    request = Request("m", (Message(Role.TOOL, (Result("fresh0", ()),)),))
    assert FreshIds(request, iter(["fresh0", "fresh1"])).take("") == "fresh1"

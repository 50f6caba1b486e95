"""How an answer to a task is marked."""

import pytest

from toolspeak.doctor.suite import FERRIES, SHELF, TABLE
from toolspeak.doctor.task import AnyOf, ExpectedCall, TaskStep, check_answer, is_valid
from toolspeak.ir.event import StopReason
from toolspeak.ir.message import Call, Text
from toolspeak.ir.turn import Turn

TOOLS = (FERRIES, SHELF, TABLE)
MOSS = ExpectedCall("ferry_times", {"harbour": "Moss"})
DUNE = ExpectedCall("find_book", {"title": "Dune"})


def called(*calls: tuple[str, str]) -> Turn:
    return Turn(tuple(Call(str(at), name, arguments) for at, (name, arguments) in enumerate(calls)), StopReason.CALLS)


def said(text: str) -> Turn:
    return Turn((Text(text),), StopReason.END)


@pytest.mark.parametrize(
    ("turn", "problem"),
    [
        (called(("ferry_times", '{"harbour": "Moss"}')), ""),
        (called(("ferry_times", '{"harbour": " moss. "}')), ""),
        (called(("ferry_times", '{"harbour": "Oslo"}')), "harbour is 'Oslo'"),
        (called(("ferry_times", '{"harbour": "Moss", "day": 1}')), "has day as well"),
        (called(("ferry_times", "{}")), "lacks harbour"),
        (called(("ferry_times", "Moss")), "arguments are no JSON object"),
        (called(("find_book", '{"title": "Moss"}')), "calls find_book"),
        (called(("ferry_times", '{"harbour": "Moss"}'), ("find_book", "{}")), "calls find_book as well"),
        (said("At noon."), "calls nothing"),
        (said(" "), "says nothing"),
    ],
)
def test_a_call_is_right_if_all_of_it_is(turn: Turn, problem: str) -> None:
    assert check_answer(TaskStep((MOSS,)), turn, TOOLS) == problem


def test_two_calls_may_come_in_any_order() -> None:
    step = TaskStep((MOSS, DUNE))
    both = called(("find_book", '{"title": "Dune"}'), ("ferry_times", '{"harbour": "Moss"}'))
    assert check_answer(step, both, TOOLS) == ""
    assert check_answer(step, called(("find_book", '{"title": "Dune"}')), TOOLS) == "makes only 1 call"
    twice = called(("ferry_times", '{"harbour": "Moss"}'), ("ferry_times", '{"harbour": "Moss"}'))
    assert check_answer(step, twice, TOOLS) == "calls ferry_times"


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ('{"people": 6, "day": "saturday", "outside": true}', True),
        ('{"people": 6.0, "day": "Saturday", "outside": true}', True),
        ('{"people": "6", "day": "saturday", "outside": true}', False),
        ('{"people": 6, "day": "saturday", "outside": 1}', False),
    ],
)
def test_numbers_and_truths_count_by_their_type(arguments: str, right: bool) -> None:
    wanted = ExpectedCall("book_table", {"people": 6, "day": "saturday", "outside": True})
    assert (check_answer(TaskStep((wanted,)), called(("book_table", arguments)), TOOLS) == "") is right


@pytest.mark.parametrize(("given", "right"), [("a\\nb", True), ("a\\nb\\n", True), ("A\\nb", False), ("a b", False)])
def test_exact_texts_count_letter_by_letter(given: str, right: bool) -> None:
    wanted = ExpectedCall("find_book", {"title": AnyOf(("a\nb", "a\nb\n"))}, exact=True)
    assert (check_answer(TaskStep((wanted,)), called(("find_book", f'{{"title": "{given}"}}')), TOOLS) == "") is right


def test_lists_and_objects_are_compared_within() -> None:
    wanted = ExpectedCall("x", {"colors": ["red", "blue"], "to": {"city": "Bergen"}})
    right = called(("x", '{"colors": ["Red", "blue"], "to": {"city": "bergen"}}'))
    assert check_answer(TaskStep((wanted,)), right, TOOLS) == ""
    for wrong in ('{"colors": ["red"], "to": {"city": "Bergen"}}', '{"colors": ["red", "blue"], "to": {"town": "x"}}'):
        assert check_answer(TaskStep((wanted,)), called(("x", wrong)), TOOLS) != ""


@pytest.mark.parametrize(
    ("turn", "problem"),
    [
        (said("The next one leaves at 14:35."), ""),
        (said("It leaves soon."), "does not say 14:35"),
        (said(""), "says nothing"),
        (called(("ferry_times", '{"harbour": "Moss"}')), "calls ferry_times"),
        (
            said('<tool_call>{"name": "ferry_times", "arguments": {"harbour": "14:35"}}</tool_call>'),
            "shows a call as text",
        ),
        (said('{"name": "hello", "arguments": {"time": "14:35"}}'), "shows a call as text"),
    ],
)
def test_words_are_right_if_they_are_words(turn: Turn, problem: str) -> None:
    assert check_answer(TaskStep(says=("14:35",)), turn, TOOLS) == problem


@pytest.mark.parametrize(
    ("name", "arguments", "valid"),
    [
        ("book_table", '{"people": 6, "day": "friday", "outside": false}', True),
        ("book_table", '{"people": 6, "day": "monday", "outside": false}', False),
        ("book_table", "{", False),
        ("nobody", "{}", False),
    ],
)
def test_a_call_is_valid_if_it_fits_its_schema(name: str, arguments: str, valid: bool) -> None:
    assert is_valid(Call("1", name, arguments), TOOLS) is valid

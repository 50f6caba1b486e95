"""Optional arguments that the conversation does not mention are dropped (CHK-11)."""

import pytest

from tests.unit.engine.guardrails.talk import conversation
from tests.unit.engine.scene import FORCE, ask, run, user, written
from toolspeak.engine.guardrails.guardrail import KeepCall
from toolspeak.engine.guardrails.unmentioned_arguments import LEFT_OUT, drop_unmentioned
from toolspeak.engine.settings import Settings
from toolspeak.ir.event import CallEnded
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool

MENTIONED = Settings(drop_unmentioned_arguments=True)
FIND = Tool(
    "find_books",
    "Find books by a writer.",
    {
        "type": "object",
        "properties": {
            "writer": {"type": "string"},
            "genre": {"type": "string"},
            "order": {"enum": ["new", "old"]},
            "limit": {"type": "integer"},
            "signed": {"type": "boolean"},
            "years": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["writer"],
    },
)
BOOKS = ask(user("Which books of Selma Lagerlöf came out in 1901 and 1902, in the order of three lists?"), tools=[FIND])


def kept(arguments: str) -> str:
    """Let a model call with these arguments."""
    ran = run(MENTIONED.over(FORCE), written(Call("c", "find_books", arguments), tools=[FIND]), request=BOOKS)
    return ran.turn.calls[0].arguments


def test_an_optional_argument_that_nobody_told_is_left_out_chk11() -> None:
    assert kept('{"writer": "Selma Lagerlöf", "genre": "novel", "limit": 25}') == '{"writer":"Selma Lagerlöf"}'


@pytest.mark.parametrize(
    "arguments",
    [
        '{"writer": "Nobody"}',
        '{"writer": "Selma Lagerlöf", "order": "new"}',
        '{"writer": "Selma Lagerlöf", "limit": 3}',
        '{"writer": "Selma Lagerlöf", "signed": true}',
        '{"writer": "Selma Lagerlöf", "years": [1901, 1907]}',
        '{"writer": "Selma Lagerlöf", "genre": "lists of books"}',
    ],
)
def test_what_is_needed_chosen_or_told_stays_chk11(arguments: str) -> None:
    assert kept(arguments) == arguments


def test_what_was_left_out_is_a_fix_chk11() -> None:
    call = Call("c", "find_books", '{"writer": "Selma Lagerlöf", "genre": "novel"}')
    ran = run(MENTIONED.over(FORCE), written(call, tools=[FIND]), request=BOOKS)
    (ended,) = (event for event in ran.events if isinstance(event, CallEnded))
    assert [(fix.what, fix.path) for fix in ended.fixes] == [(LEFT_OUT, "/genre")]


def test_arguments_that_are_no_object_are_nobodys_to_judge_chk11() -> None:
    asked = conversation(user("What is the time?"), tools=[FIND])
    for arguments in ("[1]", "{"):
        call = Call("c", "find_books", arguments)
        assert drop_unmentioned(call, asked) == KeepCall(call)

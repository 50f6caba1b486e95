"""Which values of a call the conversation mentions (CHK-10, CHK-14)."""

import pytest

from tests.unit.engine.guardrails.talk import conversation
from tests.unit.engine.scene import user
from toolspeak.engine.guardrails.values import has_made_up_arguments, is_made_up
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump

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
SAID = conversation(
    user("Which books of Selma Lagerlöf came out in 1901 and 1902, in the order of three lists?"), tools=[FIND]
)


@pytest.mark.parametrize(
    ("key", "value"), [("writer", "Nobody"), ("genre", "novel"), ("limit", 25), ("years", [1950, 1960])]
)
def test_a_value_that_was_not_said_is_made_up_chk14(key: str, value: Json) -> None:
    assert is_made_up("find_books", key, value, SAID)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("writer", "Selma Lagerlöf"),
        ("order", "new"),
        ("limit", 3),
        ("signed", True),
        ("genre", None),
        ("years", []),
        ("years", [1901, 1907]),
        ("genre", "lists of books"),
    ],
)
def test_what_was_said_or_chosen_is_not_made_up_chk14(key: str, value: Json) -> None:
    assert not is_made_up("find_books", key, value, SAID)


@pytest.mark.parametrize(
    ("name", "arguments", "is_made_up"),
    [
        ("find_books", dump({"writer": "Nobody"}), True),
        ("find_books", dump({"writer": "Selma Lagerlöf", "genre": "novel"}), False),
        ("find_books", "[1]", False),
        ("find_books", "{", False),
        ("find_films", dump({"writer": "Nobody"}), False),
    ],
)
def test_only_required_arguments_of_known_tools_are_made_up_chk14(name: str, arguments: str, is_made_up: bool) -> None:
    assert has_made_up_arguments(Call("c", name, arguments), SAID) is is_made_up

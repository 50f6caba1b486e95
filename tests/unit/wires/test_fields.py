"""Fields of a body: each taken by its type, and each complaint with its path, what is accepted, and the value."""

from collections.abc import Callable

import pytest

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Vendor
from toolspeak.wires.shared.json_body import LONGEST_QUOTE, Fields, dump_text, kind_of

Take = Callable[[Fields, str], object]

SAMPLES: list[Json] = ["a", "", 5, 0, 5.5, 5.0, True, False, [], ["a"], [1], {}, {"a": 1}]
ACCEPTS: dict[str, tuple[Take, str, Callable[[Json], bool]]] = {
    "text": (Fields.text, "a string", lambda value: isinstance(value, str)),
    "number": (Fields.number, "a number", lambda value: kind_of(value) == "a number"),
    "flag": (Fields.flag, "a boolean", lambda value: isinstance(value, bool)),
    "object": (Fields.json_object, "an object", lambda value: isinstance(value, dict)),
    "array": (Fields.array, "an array", lambda value: isinstance(value, list)),
}


def complaint(take: Callable[[], object]) -> BadField:
    with pytest.raises(BadField) as refused:
        take()
    return refused.value


# By type


@pytest.mark.parametrize("kind", ACCEPTS)
@pytest.mark.parametrize("value", SAMPLES, ids=repr)
def test_a_field_is_taken_out_or_refused_with_its_path_its_type_and_its_value(kind: str, value: Json) -> None:
    take, accepted, is_accepted = ACCEPTS[kind]
    fields = Fields({"a": value, "b": 1}, key="messages[0]")
    if is_accepted(value):
        assert take(fields, "a") == value
        assert fields.left == {"b": 1}
        return
    error = complaint(lambda: take(fields, "a"))
    assert error.field == "messages[0].a"
    assert str(error).startswith(f"messages[0].a: expected {accepted}, got {kind_of(value)}")
    if not isinstance(value, list | dict):
        assert str(error).endswith(f" ({dump_text(value)})")


TAKES: list[Take] = [
    Fields.take,
    Fields.text,
    Fields.number,
    Fields.integer,
    Fields.flag,
    Fields.json_object,
    Fields.array,
    Fields.fields,
]


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("body", [{}, {"a": None}], ids=["missing", "null"])
def test_missing_and_null_are_the_same(take: Take, body: JsonObject) -> None:
    fields = Fields(dict(body))
    assert take(fields, "a") is None
    assert fields.left == {}


def test_of_nothing_there_are_no_objects_and_no_texts() -> None:
    for body in ({}, {"a": None}):
        assert Fields(dict(body)).each("a") == []
        assert Fields(dict(body)).texts("a") == ()


@pytest.mark.parametrize("value", [5, 5.0, -3, 0, 10**400])
def test_an_integer_is_a_number_without_a_fraction(value: float) -> None:
    taken = Fields({"a": value}).integer("a")
    assert taken == value
    assert type(taken) is int


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5.5, "a: expected an integer, got a number (5.5)"),
        ("5", 'a: expected a number, got a string ("5")'),
        (True, "a: expected a number, got a boolean (true)"),
        ([5], "a: expected a number, got an array"),
    ],
)
def test_what_is_no_integer_is_refused(value: Json, says: str) -> None:
    assert str(complaint(lambda: Fields({"a": value}).integer("a"))) == says


def test_a_text_that_is_needed_must_be_there_and_not_be_empty() -> None:
    assert Fields({"a": "x"}).need_text("a") == "x"
    for body in ({}, {"a": None}, {"a": ""}):
        error = complaint(lambda body=body: Fields(dict(body), key="tools[3]").need_text("a"))
        assert str(error) == "tools[3].a: is required: a string that is not empty"
    assert str(complaint(lambda: Fields({"a": 5}).need_text("a"))) == "a: expected a string, got a number (5)"


@pytest.mark.parametrize(("value", "taken"), [("a", ("a",)), (["a", ""], ("a", "")), ([], ()), ("", ("",))])
def test_texts_are_one_or_several(value: Json, taken: tuple[str, ...]) -> None:
    assert Fields({"stop": value}).texts("stop") == taken


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5, "stop: expected an array of strings, got a number (5)"),
        (["a", 5], "stop: expected an array of strings, got an array"),
        (["a", None], "stop: expected an array of strings, got an array"),
        ({"a": "b"}, "stop: expected an array of strings, got an object"),
    ],
)
def test_texts_that_are_none_are_refused(value: Json, says: str) -> None:
    assert str(complaint(lambda: Fields({"stop": value}).texts("stop"))) == says


# Paths


def test_paths_of_arrays_in_arrays_are_told() -> None:
    body: Json = {"messages": [{}, {"content": [{"type": "text"}, {"image": {"url": 5}}]}]}
    image = Fields(body).each("messages")[1].each("content")[1].fields("image")
    assert image is not None
    assert image.path == "messages[1].content[1].image"
    assert image.where("url") == "messages[1].content[1].image.url"
    error = complaint(lambda: image.text("url"))
    assert error.field == "messages[1].content[1].image.url"
    assert str(error) == "messages[1].content[1].image.url: expected a string, got a number (5)"


NO_OBJECTS: list[tuple[list[Json], str]] = [
    ([{}, "a"], 'messages[1]: expected an object, got a string ("a")'),
    ([None], "messages[0]: expected an object, got null"),
    ([{}, {}, []], "messages[2]: expected an object, got an array"),
    ([False], "messages[0]: expected an object, got a boolean (false)"),
]


@pytest.mark.parametrize(("items", "says"), NO_OBJECTS)
def test_an_item_that_is_no_object_is_named_by_its_place(items: list[Json], says: str) -> None:
    error = complaint(lambda: Fields({"messages": items}).each("messages"))
    assert str(error) == says
    assert error.field == says.partition(":")[0]


def test_an_array_of_objects_must_be_an_array() -> None:
    error = complaint(lambda: Fields({"a": {"b": {}}}).each("a"))
    assert str(error) == "a: expected an array, got an object"


def test_an_object_inside_must_be_one() -> None:
    error = complaint(lambda: Fields({"a": "x"}, key="tools[0]").fields("a"))
    assert str(error) == 'tools[0].a: expected an object, got a string ("x")'


def test_a_body_itself_has_no_path() -> None:
    assert Fields({}).path == ""
    error = complaint(lambda: Fields([]))
    assert (str(error), error.field) == ("expected an object, got an array", "")


def test_a_complaint_can_be_made_of_any_value() -> None:
    error = Fields({}, key="x").bad("mode", "auto or none", "maybe")
    assert str(error) == 'x.mode: expected auto or none, got a string ("maybe")'


@pytest.mark.parametrize("size", [LONGEST_QUOTE - 1, LONGEST_QUOTE, LONGEST_QUOTE + 1])
def test_a_long_value_is_cut_in_a_complaint_p7(size: int) -> None:
    shown = dump_text("x" * (size - 2))
    assert len(shown) == size
    says = str(complaint(lambda: Fields({"a": "x" * (size - 2)}).number("a")))
    cut = shown if size <= LONGEST_QUOTE else shown[:LONGEST_QUOTE] + "…"
    assert says == f"a: expected a number, got a string ({cut})"


# What is left


def test_what_nobody_took_is_the_vendors() -> None:
    fields = Fields({"role": "user", "content": "x", "cache_control": {"type": "ephemeral"}})
    assert (fields.text("role"), fields.take("content")) == ("user", "x")
    assert fields.vendor("w") == Vendor("w", {"cache_control": {"type": "ephemeral"}})


def test_where_nothing_is_left_there_is_no_vendor() -> None:
    fields = Fields({"role": "user", "name": None})
    assert (fields.text("role"), fields.text("name")) == ("user", None)
    assert fields.vendor("w") is None


def test_taking_from_an_object_inside_leaves_the_rest_of_it() -> None:
    fields = Fields({"function": {"name": "f", "strict": True}})
    function = fields.fields("function")
    assert function is not None
    assert function.need_text("name") == "f"
    assert (function.left, fields.left) == ({"strict": True}, {})


def test_what_is_left_of_an_object_can_be_put_back() -> None:
    fields = Fields({"function": {"name": "f", "strict": True}, "options": {"seed": 1}})
    function, options = fields.fields("function"), fields.fields("options")
    assert function is not None
    assert options is not None
    assert (function.text("name"), options.integer("seed")) == ("f", 1)
    fields.put_back("function", function)
    fields.put_back("options", options)
    fields.put_back("missing", fields.fields("missing"))
    assert fields.left == {"function": {"strict": True}}

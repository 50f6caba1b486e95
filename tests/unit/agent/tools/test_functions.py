"""Python functions as tools (RUN-4): schema, arguments, results, threads."""

import asyncio
import contextvars
import enum
import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest

from testkit.loopback import in_loop
from tests.unit.agent.tools.scene import call, called, error_of, text_of, told
from toolspeak import tool
from toolspeak.agent.tools.action import SECONDS, Action, CallContext, ToolEffect, ToolOutput, text_output
from toolspeak.agent.tools.functions import action_of, actions_of
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Image


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(TypedDict):
    city: str
    zip: int


@dataclass
class Point:
    x: float
    y: float = 0.0


class Box(msgspec.Struct):
    low: Point
    high: Point


def everything(  # noqa: PLR0913, PLR0917 # that is the test
    text: str,
    whole: int,
    number: float,
    yes: bool,
    texts: list[str],
    pair: tuple[int, str],
    counts: dict[str, int],
    ids: set[int],
    unit: Unit,
    size: Literal["s", "m"],
    place: Place,
    point: Point,
    box: Box,
    maybe: int | None = None,
    either: int | str = 3,
    bounded: Annotated[int, msgspec.Meta(ge=1, le=9)] = 5,
) -> str:
    return repr(
        (text, whole, number, yes, texts, pair, counts, ids, unit, size, place, point, box, maybe, either, bounded)
    )


EVERYTHING: dict[str, Any] = {
    "text": "é",
    "whole": 1,
    "number": 2,
    "yes": True,
    "texts": ["a"],
    "pair": [1, "b"],
    "counts": {"a": 1},
    "ids": [3],
    "unit": "celsius",
    "size": "m",
    "place": {"city": "Oslo", "zip": 150},
    "point": {"x": 1.5},
    "box": {"low": {"x": 0.0}, "high": {"x": 1.0, "y": 2.0}},
}


@in_loop
async def test_every_kind_of_annotation_arrives_as_its_type_run4() -> None:
    said_ = await told(everything, **EVERYTHING)
    place, low, high = {"city": "Oslo", "zip": 150}, Point(0.0), Point(1.0, 2.0)
    arrived = ("é", 1, 2.0, True, ["a"], (1, "b"), {"a": 1}, {3}, Unit.C, "m", place, Point(1.5), Box(low, high))
    assert said_ == repr((*arrived, None, 3, 5))


def test_the_schema_says_types_names_defaults_and_what_is_needed_run4() -> None:
    schema: Any = action_of(everything).tool.parameters
    assert schema["required"] == list(EVERYTHING)
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["texts"] == {"type": "array", "items": {"type": "string"}}
    assert properties["size"] == {"enum": ["m", "s"]}
    assert properties["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert properties["either"]["default"] == 3
    assert properties["bounded"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 5}
    assert properties["unit"] == {"$ref": "#/$defs/Unit"}
    assert schema["$defs"]["Unit"]["enum"] == ["celsius", "fahrenheit"]
    assert schema["$defs"].keys() == {"Unit", "Place", "Point", "Box"}


def weather(city: str, days: Annotated[int, "How far to look"] = 1, *, unit: Unit = Unit.C) -> str:
    """Say what the weather
    will be.

    It asks nobody.

    Args:
        city (str): The place,
            by its name
        unit: In what
            degrees are told
        nobody: is not there

    Returns:
        city: not this
    """  # noqa: D205 # people write such docstrings
    return f"{city} {days} {unit.value}"


def test_the_docstring_describes_the_tool_and_its_parameters_run4() -> None:
    about = action_of(weather).tool
    assert (about.name, about.description) == ("weather", "Say what the weather will be.")
    properties: Any = about.parameters["properties"]
    assert properties["city"] == {"type": "string", "description": "The place, by its name"}
    assert properties["days"]["description"] == "How far to look"
    assert properties["unit"]["description"] == "In what degrees are told"
    assert properties["unit"]["default"] == "celsius"
    assert properties.keys() == {"city", "days", "unit"}


def test_a_function_that_says_nothing_may_run_only_once_run3() -> None:
    made = action_of(weather)
    assert (made.effect, made.contained, made.ends, made.seconds) == (ToolEffect.ONCE, False, False, SECONDS)


def test_the_decorator_notes_and_leaves_the_function_as_it_is() -> None:
    @tool(name="look-up", description="Look.", effect="reads", contained=True, ends=True, seconds=3)
    def look(word: str) -> str:
        return word * 2

    @tool
    def bare() -> None: ...

    made = action_of(look)
    assert look("a") == "aa"
    assert (made.name, made.tool.description, made.effect) == ("look-up", "Look.", ToolEffect.READS)
    assert (made.contained, made.ends, made.seconds) == (True, True, 3)
    assert action_of(bare).effect is ToolEffect.ONCE


def test_an_effect_that_does_not_exist_is_said() -> None:
    with pytest.raises(BadField, match="effect: 'writes' is not one of reads, repeats, once"):
        tool(effect="writes")


@in_loop
async def test_a_parameter_that_wants_to_know_the_call_is_told_and_not_shown_run3() -> None:
    def pay(amount: int, doing: CallContext) -> str:
        return f"{amount} under {doing.key}"

    assert action_of(pay).tool.parameters["properties"] == {"amount": {"type": "integer"}}
    assert await told(pay, amount=3) == "3 under run:0:0"
    assert "doing" in await error_of(pay, amount=3, doing={"key": "forged"})


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("as it is", "as it is"),
        ({"degrees": -4}, '{"degrees":-4}'),
        (None, "null"),
        ([1, 2.5, True], "[1,2.5,true]"),
        (Point(1.0), '{"x":1.0,"y":0.0}'),
        (Unit.C, '"celsius"'),
        (text_output("so"), "so"),
    ],
)
def test_what_a_function_returns_is_text_or_json_run4(returned: object, text: str) -> None:
    def give() -> object:
        return returned

    assert asyncio.run(told(give)) == text


@in_loop
async def test_an_image_stays_an_image() -> None:
    def draw() -> Image:
        return Image("image/png", "aGk=")

    assert (await called(draw)).content == (Image("image/png", "aGk="),)


@in_loop
async def test_what_is_no_json_is_said() -> None:
    def give() -> object:
        return object()

    assert await error_of(give) == (
        "give failed: its result: a object cannot be written as JSON: Encoding objects of type object is unsupported"
    )


@in_loop
async def test_functions_that_await_run_in_the_loop_and_others_in_a_thread() -> None:
    async def here() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    def there() -> str:
        return threading.current_thread().name

    assert await told(here) == threading.current_thread().name
    assert await told(there) == "tool there"


@in_loop
async def test_methods_partials_and_objects_are_functions_too() -> None:
    class Adder:
        def __init__(self, by: int) -> None:
            self.by = by

        @tool(effect="reads")
        async def add(self, to: int) -> int:
            """Add."""
            return to + self.by

        def __call__(self, to: int) -> int:
            """Add too."""
            return to + self.by

    named = tool(name="adder")(Adder(2))
    part = tool(name="five", effect="reads")(functools.partial(Adder(0).add, to=5))
    assert await told(Adder(1).add, to=4) == "5"
    assert await told(named, to=4) == "6"
    assert action_of(named).tool.description == "Add too."
    assert await told(part) == "5"
    with pytest.raises(BadField, match=r"has no name; say @tool\(name=…\)"):
        action_of(Adder(1))
    with pytest.raises(BadField, match=r"has no name"):
        action_of(lambda: None)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"city": "Oslo", "days": "soon"}, '/days is "soon", but must be integer'),
        ({"city": ["Oslo"]}, "/city"),
        ({}, "/city is missing"),
        ({"city": "Oslo", "unit": "kelvin"}, "/unit"),
    ],
)
def test_an_error_names_the_parameter_and_what_is_accepted_run4(arguments: dict[str, Any], complaint: str) -> None:
    assert complaint in asyncio.run(error_of(weather, **arguments))


def test_without_a_toolbox_the_arguments_are_still_converted_or_refused() -> None:
    made = action_of(weather)
    wrong: list[tuple[JsonObject, str]] = [
        ({"city": 3}, "city: Expected `str`, got `int`"),
        ({"city": "Oslo", "town": 1}, "town: is no parameter; these are: city, days, unit"),
    ]
    for arguments, complaint in wrong:
        with pytest.raises(BadField, match=complaint):
            asyncio.run(_acted(made, arguments))


async def _acted(made: Action, arguments: JsonObject) -> ToolOutput:
    return await made.act(arguments, CallContext())


@in_loop
async def test_what_a_model_wrote_is_never_evaluated_safe5() -> None:
    def echo(value: Any, other: str = "") -> str:  # noqa: ANN401
        return f"{value!r} {other}"

    bad = "__import__('os').system('touch /tmp/pwned')"
    assert await told(echo, value=bad, other="{value}") == f"{bad!r} {{value}}"


class Unknown:
    pass


def takes_unknown(thing: Unknown) -> None: ...


def takes_many(*things: int) -> None: ...


def takes_names(**things: int) -> None: ...


def takes_places(thing: int, /) -> None: ...


def takes_nobody(thing: int) -> None: ...


takes_nobody.__annotations__["thing"] = "Nobody"


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (takes_unknown, r"takes_unknown\(thing\): .*Unknown.* has no JSON form"),
        (takes_many, r"takes_many\(things\): is any number of values; a tool's parameters have names"),
        (takes_names, r"takes_names\(things\): is any number of names"),
        (takes_places, r"takes_places\(thing\): is taken by its place"),
        (takes_nobody, r"takes_nobody: an annotation cannot be read: name 'Nobody'"),
        (3, r"3 is neither a function nor an Action"),
    ],
)
def test_a_function_that_cannot_be_a_tool_says_which_parameter_is_to_blame(
    function: Callable[..., object], complaint: str
) -> None:
    with pytest.raises(BadField, match=complaint):
        actions_of([function])


@in_loop
async def test_a_function_sees_the_context_of_its_caller() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    who.set("me")

    def ask() -> str:
        return who.get()

    assert await told(ask) == "me"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration("x"), GeneratorExit()])
def test_a_function_in_a_thread_ends_nothing_but_itself(error: BaseException) -> None:
    def leave() -> None:
        raise error

    assert type(error).__name__ in asyncio.run(error_of(leave))


@in_loop
async def test_functions_that_hang_hold_up_nobody_run4() -> None:
    """Asyncio's own pool has few threads: as many hanging tools would hold up the look-up of hosts."""
    done, came_back = threading.Event(), list[str]()

    @tool(seconds=0.05)
    def hang() -> str:
        done.wait()
        came_back.append("late")
        return "late"

    async with asyncio.TaskGroup() as group:
        hanging = [group.create_task(error_of(hang)) for _ in range(40)]
    assert {each.result() for each in hanging} == {
        "hang was stopped after 0.05 seconds; what it did until then is done."
    }
    assert await asyncio.to_thread(lambda: "free") == "free"
    assert came_back == [], "none of them has ended, and yet there is a thread"
    done.set()


def test_a_function_that_hangs_does_not_keep_the_process() -> None:
    script = (
        "import asyncio, threading\n"
        "from toolspeak.agent.tools.functions import action_of, tool\n"
        "from toolspeak.agent.tools.toolbox import Toolbox\n"
        "from toolspeak.agent.tools.action import CallContext\n"
        "from toolspeak.ir.message import Call\n"
        "hang = tool(seconds=0.1, name='hang')(lambda: threading.Event().wait())\n"
        "print(asyncio.run(Toolbox([action_of(hang)]).run(Call('1', 'hang', '{}'), CallContext())).is_error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@in_loop
async def test_who_cancels_a_function_in_a_thread_no_longer_waits() -> None:
    begun, done = threading.Event(), threading.Event()

    def hang() -> str:
        begun.set()
        done.wait(10)
        return "late"

    box = Toolbox(actions_of([hang]))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(box.run(call("hang"), CallContext()))
        await asyncio.to_thread(begun.wait, 5)
        running.cancel()
    assert running.cancelled()
    done.set()
    assert text_of(await box.run(call("hang"), CallContext())) == "late"

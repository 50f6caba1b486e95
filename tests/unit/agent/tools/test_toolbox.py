"""The toolbox: whatever a tool does, its call has one result, no longer than it may be (RUN-4)."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from testkit.loopback import in_loop
from tests.unit.agent.tools.scene import call, called, error_of, plain, text_of, told
from toolspeak import tool
from toolspeak.agent.tools.action import Action, CallContext, ToolOutput, text_output
from toolspeak.agent.tools.functions import actions_of
from toolspeak.agent.tools.toolbox import IMAGE_BYTES, IMAGES, OUTPUT, Toolbox, fit_output
from toolspeak.errors import BadField, BadRequest, BadSchema
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Opaque, Result, ResultPart, Text, ToolReference, Vendor
from toolspeak.ir.tool import Tool


def greet(who: str, times: int = 1) -> str:
    return f"Hello {who}! " * times


@in_loop
async def test_a_result_has_the_id_and_name_of_its_call_run4() -> None:
    box = Toolbox(actions_of([greet]))
    result = await box.run(call("greet", "c7", who="Ann"), CallContext())
    assert result == Result("c7", (Text("Hello Ann! "),), "greet", is_error=False)


@in_loop
async def test_a_tool_that_is_not_there_is_answered_with_those_that_are() -> None:
    result = await Toolbox(actions_of([greet])).run(call("wave"), CallContext())
    assert result.is_error
    assert text_of(result) == "There is no tool 'wave'; there are: greet."


@pytest.mark.parametrize("arguments", ["[1]", "3", '"x"', "{", "nonsense", '{"who": "\ud800"}'])
def test_arguments_that_are_no_object_are_a_result_too(arguments: str) -> None:
    result = asyncio.run(Toolbox(actions_of([greet])).run(Call("1", "greet", arguments), CallContext()))
    assert result.is_error
    assert text_of(result).startswith("greet failed: ")


@in_loop
async def test_empty_arguments_are_none() -> None:
    result = await Toolbox([plain()]).run(Call("1", "plain", ""), CallContext())
    assert (text_of(result), result.is_error) == ("done", False)


@in_loop
async def test_arguments_of_any_caller_are_fitted_and_checked_run4() -> None:
    """A run's calls are checked by the engine; those over MCP and HTTP come here first."""
    box = Toolbox(actions_of([greet]))
    assert text_of(await box.run(call("greet", who="A", times="2"), CallContext())) == "Hello A! Hello A! "
    result = await box.run(call("greet", who="A", times="often", more=1), CallContext())
    assert result.is_error
    assert "/times" in text_of(result)
    assert "integer" in text_of(result)


def test_two_tools_of_one_name_and_names_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadField, match="two tools are called 'plain'"):
        Toolbox([plain(), plain()])
    with pytest.raises(BadRequest, match="is not accepted"):
        Toolbox([plain("a b")])
    with pytest.raises(BadSchema, match="the type is array, object is accepted"):
        Toolbox([replace(plain(), tool=Tool("plain", "", {"type": "array"}))])


class Nasty(Exception):
    @override
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city"), "fail failed: ValueError: no such city"),
        (KeyError(), "fail failed: KeyError"),
        (Nasty(), "fail failed: Nasty"),
        (TimeoutError("the server is slow"), "fail failed: TimeoutError: the server is slow"),
        (asyncio.CancelledError(), "fail failed: it cancelled itself"),
        (RecursionError("deep"), "fail failed: RecursionError: deep"),
        (BaseExceptionGroup("two", [ValueError(1)]), "fail failed: ExceptionGroup: two (1 sub-exception)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_a_result_run4(error: BaseException, text: str) -> None:
    async def fail() -> None:
        raise error

    assert asyncio.run(error_of(fail)) == text


@in_loop
async def test_an_error_is_no_longer_than_a_result_run4() -> None:
    async def fail() -> None:
        raise ValueError("x" * 100_000)

    text = await error_of(fail)
    assert len(text) < OUTPUT + 100
    assert text.startswith("fail failed: ValueError: xxx")
    assert "bytes left out" in text


@in_loop
async def test_a_tool_that_is_too_slow_is_stopped_run4() -> None:
    stopped = asyncio.Event()

    @tool(seconds=0.02)
    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    assert await error_of(slow) == "slow was stopped after 0.02 seconds; what it did until then is done."
    assert stopped.is_set()


@in_loop
async def test_cancelling_a_call_stops_its_tool_and_raises_run1() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(Toolbox(actions_of([slow])).run(call("slow"), CallContext()))
        await begun.wait()
        running.cancel()
    assert running.cancelled()
    assert stopped.is_set()


@in_loop
async def test_calls_at_the_same_time_do_not_mix_run4() -> None:
    async def echo(text: str, after: float) -> str:
        await asyncio.sleep(after)
        return text

    box = Toolbox(actions_of([echo]))
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(box.run(call("echo", str(n), text=str(n), after=(50 - n) / 1000), CallContext()))
            for n in range(50)
        ]
    assert [(each.result().call_id, text_of(each.result())) for each in running] == [
        (str(n), str(n)) for n in range(50)
    ]


@in_loop
async def test_long_output_is_cut_in_the_middle_with_a_note_run4() -> None:
    text = await told(greet, who="x" * 3000, times=3)
    assert len(text.encode()) < OUTPUT + 100
    assert text.startswith("Hello xxx")
    assert text.endswith("xxx! ")
    assert "bytes left out" in text
    assert len(text_of(await called(greet, {"who": "x" * 1000}, output=100))) < 200


def many(*content: ResultPart) -> Action:
    async def act(arguments: JsonObject, doing: CallContext) -> ToolOutput:
        del arguments, doing
        return ToolOutput(content)

    return plain(act=act)


@in_loop
async def test_a_hundred_small_texts_are_cut_together_run4() -> None:
    result = await called(many(*[Text(f"{n:03}" * 100) for n in range(100)]))
    assert len(result.content) == 1
    assert len(text_of(result)) < OUTPUT + 100
    assert text_of(result).startswith("000000")
    assert text_of(result).endswith("099099")


@in_loop
async def test_a_hundred_thousand_empty_texts_are_not_kept() -> None:
    assert len((await called(many(*[Text("")] * 100_000))).content) == 1


@in_loop
async def test_images_are_kept_up_to_a_number_and_a_size_run4() -> None:
    small, large = Image("image/png", "aGk="), Image("image/png", "x" * (IMAGE_BYTES + 1))
    result = await called(many(*[small] * (IMAGES + 2)))
    assert [type(piece) for piece in result.content] == [Image] * IMAGES + [Text] * 2
    refused = (await called(many(large, small))).content
    assert refused[1] == small
    assert text_of(Result("", refused)).startswith(f"[image/png omitted] ({IMAGE_BYTES + 1} bytes; at most")


def test_references_and_what_only_vendors_know_count_as_images_do() -> None:
    huge = Opaque(Vendor("anthropic", {"data": "x" * IMAGE_BYTES}), "document")
    kept = fit_output((ToolReference("later"), huge, Text("a")), OUTPUT)
    assert kept[0] == ToolReference("later")
    assert isinstance(kept[1], Text)
    assert kept[1].text.startswith("[document omitted] (")


def test_halves_of_surrogates_are_replaced_since_no_json_can_say_them() -> None:
    assert fit_output((Text("a\ud800é"),), OUTPUT) == (Text("a?é"),)
    assert fit_output((Text("é"),), OUTPUT) == (Text("é"),)


@given(st.lists(st.text(max_size=40), max_size=40), st.integers(10, 400))
def test_texts_together_are_never_longer_than_they_may_be_run4(texts: list[str], most: int) -> None:
    kept = fit_output([Text(text) for text in texts], most)
    written = "\n".join(piece.text for piece in kept if isinstance(piece, Text)).encode()
    assert len(written) <= most + 60  # the note
    if len("\n".join(texts).encode("utf-8", "replace")) <= most:
        assert [piece.text for piece in kept if isinstance(piece, Text)] == texts


@in_loop
async def test_what_the_model_is_told_and_what_ends_a_run_run1() -> None:
    end = tool(ends=True, name="end")(lambda: "over")
    box = Toolbox(actions_of([greet, end]))
    assert [each.name for each in box.tools] == ["greet", "end"]
    assert box.ending == {"end"}
    assert box.action("greet") is not None
    assert box.action("wave") is None
    assert text_of(await box.run(call("end"), CallContext())) == "over"
    assert text_output("x") == ToolOutput((Text("x"),))

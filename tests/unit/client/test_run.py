"""`Client.run`: a task worked to its end in the caller's own process (RUN-1, RUN-4, RUN-5)."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from testkit.loopback import in_loop
from toolspeak import Action, AsyncClient, Client, Ending, Tool, UpstreamFailed, tool
from toolspeak.agent.runs.events import RunEnded, RunEvent, ToolCallAsked, ToolCallEnded, Wrote
from toolspeak.agent.tools.action import CallContext, ToolEffect, ToolOutput, text_output
from toolspeak.errors import BadField
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Role
from toolspeak.testing import AsyncScriptedUpstream, Scripted, ScriptedUpstream, called, failed

FENCED = '```tool_call\n{"name": "add", "arguments": {"a": 4, "b": "5"}}\n```'
COUNTED: list[int] = []


def add(a: int, b: int) -> int:
    """Add two numbers."""
    COUNTED.append(a)
    return a + b


def yes(call: Call) -> bool:
    del call
    return True


def no(call: Call) -> bool:
    return not yes(call)


def client(*script: Scripted) -> Client:
    return Client(AsyncScriptedUpstream(ScriptedUpstream(*script)))


def worked(*script: Scripted, **wishes: Any) -> Ending:  # noqa: ANN401 # whatever can be said
    COUNTED.clear()
    with client(*script) as asked:
        return asked.run("What is 4 and 5?", [add], **wishes)


@pytest.mark.parametrize("mode", ["off", "force"])
def test_a_run_calls_functions_until_there_is_an_answer_run1_run4(mode: str) -> None:
    script = ScriptedUpstream(called("add", '{"a": 4, "b": 5}') if mode == "off" else FENCED, "It is 9.")
    seen: list[RunEvent] = []
    with Client(AsyncScriptedUpstream(script)) as asked:
        ending = asked.run("What is 4 and 5?", [add], seen.append, mode=mode)  # type: ignore[arg-type]
    assert (ending.status, ending.text, ending.reason) == ("done", "It is 9.", "")
    ((results,),) = [[each.results for each in ending.kept.rounds]]
    assert [(result.name, result.content[0].text) for result in results] == [("add", "9")]  # type: ignore[union-attr]
    assert "".join(event.text for event in seen if isinstance(event, Wrote)).endswith("It is 9.")
    assert [type(event) for event in seen][-1] is RunEnded
    assert ending.usage.input_tokens == 20
    assert script.requests[1].messages[-1].role in (Role.TOOL, Role.USER)


def test_who_hands_over_a_function_lets_it_run_run5() -> None:
    assert worked(called("add", '{"a": 4, "b": 5}'), "Done.").status == "done"
    assert COUNTED == [4]


@pytest.mark.parametrize(
    ("wishes", "ran"),
    [
        ({"approval": "off"}, True),
        ({"approval": "auto"}, False),
        ({"approval": "ask"}, False),
        ({"approval": "read-only"}, False),
        ({"approval": "read-only", "ask": yes}, False),
        ({"ask": yes}, True),
        ({"ask": no}, False),
        ({"approval": "off", "ask": no}, True),
    ],
)
def test_who_is_asked_and_what_an_answer_does_run5(wishes: dict[str, Any], ran: bool) -> None:
    ending = worked(called("add", '{"a": 4, "b": 5}'), "Done.", **wishes)
    assert bool(COUNTED) is ran
    assert ending.kept.rounds[0].results[0].is_error is not ran


def test_a_person_may_take_long_and_other_work_goes_on_run5() -> None:
    asked_about: list[str] = []
    seen: list[RunEvent] = []
    with Client(AsyncScriptedUpstream(ScriptedUpstream(called("add", '{"a": 4, "b": 5}'), "Other.", "Done."))) as asked:

        def ask(call: Call) -> bool:
            asked_about.append(call.name)
            return asked.chat("Something else").text == "Other."  # needs the loop that waits for us

        assert asked.run("Add.", [add], seen.append, ask).text == "Done."
    assert asked_about == ["add"]
    assert [event.name for event in seen if isinstance(event, ToolCallAsked | ToolCallEnded)] == ["add", "add"]


def test_rounds_are_limited_and_then_summed_up_run1() -> None:
    calls = [called("add", f'{{"a": {n}, "b": 5}}') for n in range(3)]
    ending = worked(*calls[:2], "I have added.", rounds=2)
    assert (ending.status, ending.text, len(ending.kept.rounds)) == ("summed_up", "I have added.", 2)


def test_a_failure_ends_the_run_and_keeps_its_rounds_run1() -> None:
    ending = worked(called("add", '{"a": 4, "b": 5}'), *[failed(FailureKind.AUTH, "who are you?", 401)] * 5)
    assert (ending.status, len(ending.kept.rounds)) == ("failed", 1)
    assert ending.failure is not None
    assert ending.failure.kind is FailureKind.AUTH
    assert not isinstance(ending, UpstreamFailed)


def test_our_own_tools_work_in_a_folder_run4(tmp_path: Path) -> None:
    write = called("write_file", '{"path": "a.txt", "content": "hello"}')
    end = called("final_output", '{"summary": "It is written."}', "call_2")
    with client(write, end) as asked:
        ending = asked.run("Write hello.", ["files", "final_output"], folder=tmp_path, approval="auto")
    assert (ending.text, (tmp_path / "a.txt").read_text()) == ("It is written.", "hello")


def test_an_action_is_a_tool_too_run4() -> None:
    keys: list[str] = []

    async def act(arguments: JsonObject, doing: CallContext) -> ToolOutput:
        keys.append(doing.key)
        return text_output(str(arguments["x"]))

    action = Action(Tool("show", "", {"type": "object"}), act, ToolEffect.READS)
    with client((*called("show", '{"x": 1}'), *called("show", '{"x": 2}', "call_2")), "Done.") as asked:
        ending = asked.run("Show.", [action])
    assert [len(each.results) for each in ending.kept.rounds] == [2]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("tools", "wishes", "complaint"),
    [
        ([add, add], {}, "tools: two tools are called 'add'"),
        ([3], {}, "tools: 3 is neither a function nor an Action"),
        (["flies"], {"folder": "/"}, "tools: 'flies' is not one of files, shell, final_output"),
        (["files"], {}, "folder: '.' is not a folder; built-in tools need one"),
        (["files"], {"folder": "/nobody/has/this"}, "is not a folder"),
        ([add], {"approval": "maybe"}, "approval: 'maybe' is not one of read-only, ask, auto, off"),
        ([add], {"rounds": -1}, "rounds: -1 is not a number from 0 on"),
    ],
)
def test_what_the_caller_got_wrong_is_said_before_a_model_is_asked(
    tools: list[Any], wishes: dict[str, Any], complaint: str
) -> None:
    script = ScriptedUpstream("never")
    with Client(AsyncScriptedUpstream(script)) as asked, pytest.raises(BadField, match=complaint):
        asked.run("Do it.", tools, **wishes)
    assert not script.requests


def test_a_wish_that_does_not_exist_is_said() -> None:
    with pytest.raises(TypeError, match="'approvals' is not an option"):
        worked("never", approvals="off")


@in_loop
async def test_those_who_await_watch_and_are_asked_by_awaiting_run5() -> None:
    seen: list[str] = []

    async def watch(event: RunEvent) -> None:
        await asyncio.sleep(0)
        seen.append(type(event).__name__)

    async def ask(call: Call) -> bool:
        await asyncio.sleep(0)
        return call.name == "here"

    @tool(effect="once")
    async def here() -> str:
        return threading.current_thread().name

    script = ScriptedUpstream((*called("here"), *called("there", id="call_2")), "Done.")
    there = tool(name="there")(lambda: "never")
    async with AsyncClient(AsyncScriptedUpstream(script)) as asked:
        ending = await asked.run("Do it.", [here, there], watch, ask)
    first, second = ending.kept.rounds[0].results
    assert (first.is_error, second.is_error) == (False, True)
    assert seen.count("ToolCallAsked") == 2


@in_loop
async def test_who_cancels_a_run_stops_its_tool_run1() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    async with (
        AsyncClient(AsyncScriptedUpstream(ScriptedUpstream(called("slow")))) as asked,
        asyncio.TaskGroup() as group,
    ):
        running = group.create_task(asked.run("Do it.", [slow]))
        await begun.wait()
        running.cancel()
    assert running.cancelled()
    assert stopped.is_set()


# ---------------------------------------------------------------- like an agent


def test_a_run_has_the_agent_prompt_unless_it_is_switched_off_run15() -> None:
    script = ScriptedUpstream("Nine.", "Nine.")
    with Client(AsyncScriptedUpstream(script)) as asked:
        asked.run([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "4 and 5?"}], [add])
        asked.run("4 and 5?", [add], agent_prompt=False)
    first, second = (request.messages for request in script.requests)
    assert [message.role for message in first] == [Role.SYSTEM, Role.USER]
    assert "You are an agent" in str(first[0])
    assert "Be brief." in str(first[0])
    assert [message.role for message in second] == [Role.USER]


def test_a_run_is_told_what_it_left_out_before_it_ends_run16(tmp_path: Path) -> None:
    write = called("write_file", '{"path": "a.txt", "content": "hello"}')
    read = called("read_file", '{"path": "a.txt"}', "call_2")
    script = ScriptedUpstream(write, "It is written.", read, "It says hello.")
    with Client(AsyncScriptedUpstream(script)) as asked:
        ending = asked.run("Write hello to a.txt, then read it.", ["files"], folder=tmp_path, approval="auto")
    assert (ending.status, ending.text, len(ending.kept.rounds)) == ("done", "It says hello.", 2)
    assert "read_file was not called." in str(script.requests[2].messages[-1])


def test_a_summary_is_in_words_run17() -> None:
    ending = worked(called("add", '{"a": 4, "b": 5}'), FENCED, "I have added.", rounds=1)
    assert (ending.status, ending.text) == ("summed_up", "I have added.")


def test_a_run_continues_another_run18() -> None:
    script = ScriptedUpstream(called("add", '{"a": 4, "b": 5}'), "Nine.", "Ten.", "Eleven.", "Twelve.")
    with Client(AsyncScriptedUpstream(script)) as asked:
        first = asked.run("What is 4 and 5?", [add])
        second = asked.run("And one more?", [add], history=first)
        asked.run("And one more?", [add], history=second)
        asked.run("More?", [add], history=["Hi.", {"role": "assistant", "content": "Hello."}])
    roles = [[message.role.value for message in request.messages] for request in script.requests]
    assert roles[2] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert roles[3] == [*roles[2], "assistant", "user"]
    assert roles[4] == ["system", "user", "assistant", "user"]
    assert second.messages[: len(first.messages)] == first.messages

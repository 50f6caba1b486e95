"""BFCL's conversations: its programs run the calls, its checker judges each turn. A small package replaces both."""

import asyncio
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy import bfcl_talks, data
from bench.accuracy.bfcl_talks import BfclTalk, play, talk_of, written
from bench.accuracy.score import Delivered
from bench.accuracy.speak import Said
from bench.accuracy.split import Split, split_of
from toolspeak.ir.message import Message, Result, Role, Text
from toolspeak.ir.tool import Tool

UTILS = """
STATES = {}
def execute_multi_turn_func_call(calls, config, classes, model, entry):
    state = STATES.setdefault(model, dict(config))
    def add(item): state.setdefault("items", []).append(item); print("noise"); return "added " + item
    results = []
    for call in calls:
        try: results.append(eval(call, {"add": add}))
        except Exception as error: results.append(f"Error during execution: {error}")
    return results, state
"""
CHECKER = """
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call as execute
def multi_turn_checker(turns, truth, entry, category, model):
    for number, (steps, right) in enumerate(zip(turns, truth)):
        for step in steps: _, state = execute(step, {}, [], model, "")
        _, wanted = execute(right, {}, [], model + "truth", "")
        if not steps or state != wanted: return {"valid": False, "error_message": f"turn {number} differs"}
    return {"valid": True}
"""
DOCUMENT = {
    "name": "add",
    "description": "Add an item.",
    "parameters": {"type": "dict", "properties": {"item": {"type": "string"}}, "required": ["item"]},
}
ROW: dict[str, Any] = {
    "id": "multi_turn_base_0",
    "question": [[{"role": "user", "content": "Add milk."}], [{"role": "user", "content": "Add tea."}]],
    "initial_config": {},
    "involved_classes": ["TicketAPI"],
    "excluded_function": ["drop"],
}
TRUTH = [["add(item='milk')"], ["add(item='tea')"]]
TOOLS = (Tool("add", "", {"type": "object"}),)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, wheel = "bfcl_eval/eval_checker/multi_turn_eval", tmp_path / "bfcl.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        for name in ("bfcl_eval", "bfcl_eval/eval_checker", folder):
            made.writestr(f"{name}/__init__.py", "")
        made.writestr(f"{folder}/multi_turn_utils.py", UTILS)
        made.writestr(f"{folder}/multi_turn_checker.py", CHECKER)
        documents = [DOCUMENT, {**DOCUMENT, "name": "drop"}]
        made.writestr("bfcl_eval/data/multi_turn_func_doc/ticket_api.json", "\n".join(map(json.dumps, documents)))
        made.writestr("bfcl_eval/data/BFCL_v4_multi_turn_base.json", "\n".join(map(json.dumps, rows())))
        answers = [{"id": row["id"], "ground_truth": TRUTH} for row in rows()]
        made.writestr(
            "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_base.json", "\n".join(map(json.dumps, answers))
        )
    monkeypatch.setattr(data, "archive", lambda: wheel)
    bfcl_talks.load.cache_clear()
    bfcl_talks.tools_of.cache_clear()


def rows() -> list[dict[str, Any]]:
    many = [{**ROW, "id": f"multi_turn_base_{number}"} for number in range(20)]
    return [*many, {**ROW, "id": "multi_turn_base_99", "involved_classes": ["TicketAPI", "MathAPI"]}]


class Scripted:
    """A speaker with these answers."""

    def __init__(self, *answers: Said) -> None:
        self.answers = list(answers)
        self.seen: list[Message] = []

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        assert [tool.name for tool in tools] == ["add"]
        self.seen = list(messages)
        return self.answers.pop(0)


def add(item: str) -> Said:
    return Said("", (Delivered("add", json.dumps({"item": item})),))


def talk() -> BfclTalk:
    return talk_of(ROW, TRUTH)


def test_the_right_calls_are_right_and_results_are_shown() -> None:
    speaker = Scripted(add("milk"), Said("Done."), add("tea"), Said("Done, too."))
    played = asyncio.run(play(talk(), speaker))
    assert (played.right, played.valid, played.text, played.notes) == (True, True, "Done, too.", [])
    assert [message.role for message in speaker.seen] == [
        *(Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT),
        *(Role.USER, Role.ASSISTANT, Role.TOOL),
    ]
    assert speaker.seen[-1].parts == (Result("call_0001", (Text("added tea"),), "add"),)


def test_the_first_wrong_turn_ends_the_conversation() -> None:
    speaker = Scripted(add("butter"), Said("Done."), add("tea"))
    played = asyncio.run(play(talk(), speaker))
    assert (played.right, played.notes) == (False, ["turn 1 of 2: turn 0 differs"])
    assert len(speaker.answers) == 1


def test_an_answer_without_a_call_that_must_come_is_wrong() -> None:
    assert not asyncio.run(play(talk(), Scripted(Said("I have added it.")))).right


def test_a_failure_and_an_endless_turn_are_wrong() -> None:
    failed = asyncio.run(play(talk(), Scripted(Said(failure="too long"))))
    assert (failed.right, failed.failure) == (False, "too long")
    endless = asyncio.run(play(talk(), Scripted(*[add("milk")] * 8)))
    assert (endless.right, endless.failure) == (False, "no answer after 8 rounds")


def test_a_call_of_an_unknown_tool_is_answered_with_an_error_and_is_not_valid() -> None:
    speaker = Scripted(Said("", (Delivered("now", "{}"),)), add("milk"), Said("Done."), add("tea"), Said("Done."))
    played = asyncio.run(play(talk(), speaker))
    assert (played.right, played.valid) == (True, False)
    assert "Error during execution" in str(speaker.seen[2].parts[0])


@pytest.mark.parametrize(
    ("name", "arguments", "evaluated"),
    [
        ("add", '{"item": "it\'s", "count": [1, true, null]}', 'add(item="it\'s", count=[1, True, None])'),
        ("add", '{"item": "x); import os; ("}', "add(item='x); import os; (')"),
        ("add", '{"item=1) or quit(": 1}', "add(unreadable_arguments)"),
        ("add", "[]", "add(unreadable_arguments)"),
        ("__import__('os').system", "{}", "unknown_function()"),
    ],
)
def test_model_text_gets_into_what_is_evaluated_as_literals_only(name: str, arguments: str, evaluated: str) -> None:
    assert written(Delivered(name, arguments), TOOLS) == evaluated


def test_a_sample_is_of_one_split_and_without_the_calculator() -> None:
    held_out, development = (bfcl_talks.sample(99, 6, split) for split in (Split.HELD_OUT, Split.DEVELOPMENT))
    assert len(held_out) + len(development) == 20
    assert all(split_of(one.id) is Split.HELD_OUT for one in held_out)
    assert bfcl_talks.sample(3, 6, Split.HELD_OUT) == held_out[:3]
    assert "multi_turn_base_99" not in {one.id for one in (*held_out, *development)}

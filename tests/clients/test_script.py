"""What makes the rows of `just clients` worth something: the scripted model calls, believes and refuses as it says."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests.clients.rows import FEW, SETTINGS, WIRES, brief, cases, rows
from tests.clients.run import renewed
from tests.clients.script import Asked, content_of, echoes, prompt_of, says
from tests.clients.speech import FORMS
from tests.clients.upstream import REFUSALS, Upstream
from tools.clients_table import PAGE, page, results
from toolspeak import dialects
from toolspeak.ir.tool import Tool

CODE = "0a1b2c3d"
USER = {"role": "user", "content": prompt_of(CODE, "/somewhere")}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [{"type": "function", "function": {"name": "Bash", "description": "Runs it.", "parameters": SCHEMA}}]
CALLED = {"role": "assistant", "tool_calls": [{"id": "1"}]}


def test_the_model_calls_a_tool_that_is_offered_in_the_request_or_taught_in_the_prompt() -> None:
    taught = {"role": "system", "content": "# Tools\n" + json.dumps(TOOLS[0]["function"])}
    offered = says({"messages": [USER], "tools": TOOLS}).call
    assert offered is not None
    assert offered.name == "Bash"
    assert content_of(CODE) in offered.arguments["command"]
    assert says({"messages": [taught, USER]}).call == offered
    assert says({"messages": [USER]}).call is None


def test_the_model_believes_only_the_mark_of_a_tool_that_ran() -> None:
    ran = {"role": "tool", "content": "kept-1234"}
    failed = {"role": "tool", "content": "no such tool"}
    assert f"fin-{CODE}" in says({"messages": [USER, CALLED, ran], "tools": TOOLS}).text
    assert f"fin-{CODE}" not in says({"messages": [USER, CALLED, failed], "tools": TOOLS}).text


def test_a_call_that_was_let_out_as_text_is_counted() -> None:
    leaked = {"role": "assistant", "content": f"```tool_call\ncode {CODE}\n```"}
    assert echoes({"messages": [USER, CALLED]}, CODE) == 0
    assert echoes({"messages": [USER, leaked]}, CODE) == 1


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_forms_made_by_hand_are_those_of_the_dialects(name: str) -> None:
    asked = Asked("Bash", {"command": content_of(CODE)})
    turn = dialects.load(name).read(FORMS[name](asked.name, asked.arguments), [Tool("Bash", "Runs it.", SCHEMA)])
    (call,) = turn.calls
    assert call.name == "Bash"
    assert json.loads(call.arguments)["command"].rstrip("\n") == content_of(CODE).rstrip("\n")


@pytest.mark.parametrize("wording", sorted(REFUSALS))
def test_an_upstream_refuses_tools_and_nothing_else(wording: str) -> None:
    upstream = Upstream("refuses", wording=wording)
    with_tools, without = asyncio.run(_asked(upstream, {"messages": [USER], "tools": TOOLS}, {"messages": [USER]}))
    assert with_tools == REFUSALS[wording][0]
    assert without == 200
    assert [note.said for note in upstream.notes] == ["refused", "text"]


async def _asked(upstream: Upstream, *bodies: dict[str, Any]) -> list[int]:
    port = await upstream.start()
    statuses: list[int] = []
    async with aiohttp.ClientSession() as session:
        for body in bodies:
            async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as answer:
                statuses.append(answer.status)
    await upstream.stop()
    return statuses


def test_every_fast_row_meets_every_kind_of_upstream() -> None:
    met = {(case.row.name, case.setting.name) for case in cases(everything=False)}
    for row in (row for row in rows() if row.fast):
        missed = {setting.name for setting in SETTINGS if (row.name, setting.name) not in met}
        assert not missed or (not row.client.startswith(FEW) and missed == set(_few()))


def test_in_brief_each_setting_is_still_met_and_each_row_meets_a_refusal() -> None:
    taken = brief(cases(everything=False))
    assert {case.setting.name for case in taken} == {setting.name for setting in SETTINGS}
    for row in (row for row in rows() if row.fast):
        met = [case.setting.mode for case in taken if case.row.name == row.name]
        assert met.count("refuses") == met.count("native") == met.count("leaks") == 1


def _few() -> Iterator[str]:
    return (setting.name for setting in SETTINGS if setting.few)


def test_the_page_of_clients_says_what_was_measured_and_how_they_are_started() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tools.clients_table`"


def test_every_row_was_measured_and_what_failed_is_explained() -> None:
    measured = {(result["client"], result["wire"], result["upstream"]): result for result in results()}
    wanted = {(case.row.client, case.row.wire, case.setting.name) for case in cases(everything=True)}
    assert set(measured) == wanted
    assert [key for key, result in measured.items() if not result["passed"] and not result.get("explanation")] == []


def test_a_run_of_some_cases_renews_their_results_and_keeps_the_others() -> None:
    first, second, *_ = results()
    seconds = first["seconds"] + 1
    gone = {**first, "client": "a client without a row"}
    assert renewed([{**first, "seconds": seconds}, gone]) == [{**first, "seconds": seconds}, second, *results()[2:]]


def test_there_are_at_least_fifty_rows_on_all_wires_each_with_a_name_of_its_own() -> None:
    names = [row.name for row in rows()]
    assert len(set(names)) == len(names) >= 50
    assert {row.wire for row in rows()} == set(WIRES)

"""The forms with a scripted server and the real relay: their requests, their readings and their usage."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench.accuracy.answers import Answers
from bench.accuracy.forms import form_of
from bench.accuracy.relay import Account, Relay
from bench.accuracy.score import Delivered
from bench.accuracy.speak import Said, Where
from testkit.llama_models import DEFAULT
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Sampling
from toolspeak.ir.tool import Tool
from toolspeak.runtime.http_transport import HttpTransport

SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (Tool("get_weather", "Tell the weather.", SCHEMA),)
ASKED = (Message(Role.USER, (Text("Weather in Oslo?"),)),)
AFTER = (
    *ASKED,
    Message(Role.ASSISTANT, (Call("c1", "get_weather", '{"city": "Oslo"}'),)),
    Message(Role.TOOL, (Result("c1", (Text("3 degrees"),), "get_weather"),)),
)
OSLO = (Delivered("get_weather", '{"city": "Oslo"}'),)


@dataclass
class Model:
    """Answers with these texts, one after the other, and records the requests; an integer is an error."""

    texts: list[str | int]
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def answer(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.json())
        text = self.texts.pop(0)
        if isinstance(text, int):
            return web.json_response({"error": {"message": "no"}}, status=text)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return web.json_response({"object": "chat.completion", "choices": choices, "usage": usage})

    def said(self, index: int = 0) -> str:
        """Return all text of a request."""
        return json.dumps(self.bodies[index]["messages"])


async def _asked(model: Model, form: str, messages: Sequence[Message], folder: Path) -> tuple[Said, Account]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    transport, answers = HttpTransport(), Answers(DEFAULT, folder, folder)
    try:
        async with Relay(f"http://127.0.0.1:{runner.addresses[0][1]}", "llama.cpp b1", answers) as relay:
            where = Where(relay.url("me"), "m", Sampling(temperature=0.0, max_tokens=64), transport)
            return await form_of(form).speaker(where).ask(messages, TOOLS), relay.settle("me")
    finally:
        answers.close()
        await transport.close()
        await runner.cleanup()


def asked(model: Model, form: str, folder: Path, messages: Sequence[Message] = ASKED) -> tuple[Said, Account]:
    return asyncio.run(_asked(model, form, messages, folder))


FENCED = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'


def test_native_reads_no_text_and_rescue_does(tmp_path: Path) -> None:
    model = Model([FENCED])
    assert asked(model, "native", tmp_path)[0].calls == ()
    said, used = asked(model, "native+rescue", tmp_path)
    assert said.calls == OSLO
    assert model.bodies[0]["tools"]
    assert len(model.bodies) == 1  # the same question is not sent twice
    assert (used.requests, used.input_tokens, used.output_tokens) == (1, 40, 5)  # but it is charged


def test_a_dialect_teaches_the_tools_and_asks_again_as_its_switch_says(tmp_path: Path) -> None:
    bad = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    good = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    model = Model([bad, good])
    said, used = asked(model, "hermes", tmp_path)
    assert said.calls == OSLO
    assert used.requests == 2
    assert "tools" not in model.bodies[0]
    said, used = asked(Model([bad]), "hermes retries=0", tmp_path / "other")
    assert said.calls == ()
    assert used.requests == 1


def test_a_decision_takes_one_request_for_a_call_and_two_for_words(tmp_path: Path) -> None:
    decided = 'Sure: {"tools": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}'
    said, used = asked(Model([decided]), "seed decision", tmp_path)
    assert (said.calls, used.requests) == (OSLO, 1)
    model = Model(['{"tools": []}', "Hello."])
    said, used = asked(model, "seed decision", tmp_path / "other")
    assert (said, used.requests) == (Said("Hello."), 2)
    assert "get_weather" not in model.said(1)


def test_a_decision_forgets_results_as_it_is_described(tmp_path: Path) -> None:
    model = Model(['{"tools": []}', "3 degrees."])
    asked(model, "seed decision", tmp_path, AFTER)
    assert "3 degrees" not in model.said(0)
    assert "3 degrees" in model.said(1)


def test_an_action_is_a_fenced_block_and_history_is_written_as_one(tmp_path: Path) -> None:
    block = '```json action\n{"tool": "get_weather", "parameters": {"city": "Oslo"}}\n```'
    model = Model([f"I look.\n{block}"])
    said, _ = asked(model, "seed json action", tmp_path, AFTER)
    assert said == Said("I look.", OSLO)
    assert "json action" in model.bodies[0]["messages"][2]["content"]
    assert "3 degrees" in model.bodies[0]["messages"][3]["content"]


@pytest.mark.parametrize(
    ("first", "requests"), [("I don't have access to tools.", 2), ("I cannot use any function.", 2), ("It is cold.", 1)]
)
def test_an_action_is_asked_for_once_more_after_a_refusal(tmp_path: Path, first: str, requests: int) -> None:
    block = '```json action\n{"tool": "get_weather", "parameters": {"city": "Oslo"}}\n```'
    said, used = asked(Model([first, block]), "seed json action", tmp_path)
    assert used.requests == requests
    assert bool(said.calls) is (requests == 2)


def test_an_inline_call_is_found_in_the_text_and_the_final_output_is_an_answer(tmp_path: Path) -> None:
    said, _ = asked(Model(['Now:\n{"tool": "get_weather", "args": {"city": "Oslo"}}\n']), "seed inline", tmp_path)
    assert said.calls == OSLO
    final = '{"tool": "final_output", "args": {"summary": "It is cold."}}'
    said, _ = asked(Model([final]), "seed inline", tmp_path / "other")
    assert said.calls == ()
    assert "It is cold." in said.text


def test_broken_json_is_no_call_for_the_plain_forms(tmp_path: Path) -> None:
    for form in ("seed decision", "seed json action", "seed inline"):
        texts: list[str | int] = ['{"tool": "get_weather", "args": {"city": ', "Words."]
        said, _ = asked(Model(texts), form, tmp_path / form)
        assert said.calls == ()


def test_an_error_of_the_server_is_a_failure_and_is_not_kept(tmp_path: Path) -> None:
    model = Model([400, "Words."])
    said, _ = asked(model, "native", tmp_path)
    assert said.failure
    assert asked(model, "native", tmp_path)[0].text == "Words."

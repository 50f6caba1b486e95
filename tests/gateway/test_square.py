"""Every client wire over every upstream wire, through the real gateway, streamed and whole (WIRE-2, WIRE-3)."""

from dataclasses import replace

import pytest

from testkit import matrix
from testkit.grammar import Seen, read_stream, read_whole
from testkit.matrix import BERGEN, OSLO, SIGNATURE, STOPS, TEXT, THOUGHT
from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import SSE, STREAM_TYPE, Script, ScriptedUpstream, refuse, say
from testkit.vendor_answers import STREAMS, Answer, error_body
from testkit.vendor_requests import QUESTION, SCHEMA, SYSTEM, UNDERSTAND, WRITE
from tests.gateway.scene import Reply, Served, base_of, config_of, serving, towards

CALL = Answer(calls=(OSLO,))
ALL = Answer(TEXT, THOUGHT, SIGNATURE, calls=(OSLO, BERGEN))
WRITTEN = 'I look.\n\n```tool_call\n{"name": "get_weather", "arguments": {"city": "Bergen"}}\n```\n'


def seen(gateway: Served, client: str, stream: bool, **headers: str) -> tuple[Reply, Seen]:
    asked = question(client, stream=stream)
    reply = gateway.post(asked.path, asked.body, {name.replace("_", "-"): value for name, value in headers.items()})
    assert reply.status == 200, reply
    return reply, (read_stream if stream else read_whole)(client, reply.body)


def script_of(cell: matrix.Cell, answer: Answer) -> Script:
    """Return what the upstream answers in a cell."""
    if cell.scenario == matrix.REFUSED:
        return refuse(*error_body(cell.upstream, matrix.BROKEN))
    if cell.stream:
        return say(STREAMS[cell.upstream](answer).encode(), STREAM_TYPE.get(cell.upstream, SSE))
    return refuse(200, matrix.whole_answer(cell, answer))


def cell_faults(cell: matrix.Cell, gateway: Served, upstream: ScriptedUpstream) -> list[str]:
    """Go through a cell; say what is wrong."""
    ask, answer = matrix.SCENARIOS[cell.scenario]
    ask = replace(ask, stream=cell.stream)
    upstream.answers(script_of(cell, answer))
    reply = gateway.post(*WRITE[cell.client](ask))
    asked = upstream.asked[0]
    path = asked.path.removeprefix(f"{base_of(cell.upstream)}/")
    return [
        *matrix.request_faults(cell, ask, path, asked.body),
        *matrix.answer_faults(cell, answer, reply.status, reply.body),
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_all_cells_of_the_matrix_wire2_wire3(upstream: ScriptedUpstream, wire: str) -> None:
    cells = [cell for cell in matrix.cells() if cell.upstream == wire]
    assert len(cells) == 110
    with serving(config_of(towards(upstream, wire, retries=0))) as gateway:
        assert [f"{cell.name}: {fault}" for cell in cells for fault in cell_faults(cell, gateway, upstream)] == []


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", WIRES)
def test_a_native_call_wire2(over: tuple[str, Served], upstream: ScriptedUpstream, client: str, stream: bool) -> None:
    wire, gateway = over
    upstream.answers(answering(CALL))
    _, found = seen(gateway, client, stream)
    assert [(call.id, call.name, call.arguments) for call in found.calls] == [OSLO]
    assert (found.text, found.error, found.stop, found.usage) == ("", "", STOPS[client][1], (11, 7))
    (asked,) = upstream.asked
    understood = UNDERSTAND[wire](asked.path.removeprefix(f"{base_of(wire)}/"), asked.json)
    assert (understood.system, understood.user, understood.tools) == (SYSTEM, QUESTION, ("get_weather",))
    assert (understood.schema, understood.stream, understood.limit) == (SCHEMA, stream, 99)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", WIRES)
def test_reasoning_text_and_two_calls_wire3_wire7(
    over: tuple[str, Served], upstream: ScriptedUpstream, client: str, stream: bool
) -> None:
    _, gateway = over
    upstream.answers(answering(ALL))
    _, found = seen(gateway, client, stream)
    assert (found.reasoning, found.text, found.error) == (THOUGHT, TEXT, "")
    assert [(call.name, call.arguments) for call in found.calls] == [OSLO[1:], BERGEN[1:]]


@pytest.mark.parametrize("client", WIRES)
def test_a_whole_answer_is_the_fold_of_its_stream_wire4(
    over: tuple[str, Served], upstream: ScriptedUpstream, client: str
) -> None:
    _, gateway = over
    upstream.answers(answering(ALL), answering(ALL))
    (_, streamed), (_, whole) = seen(gateway, client, stream=True), seen(gateway, client, stream=False)
    assert (streamed.text, streamed.reasoning, streamed.calls) == (whole.text, whole.reasoning, whole.calls)
    assert (streamed.stop, streamed.usage, streamed.error) == (whole.stop, whole.usage, "")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", WIRES)
def test_an_emulated_call_wire2(
    over: tuple[str, Served], upstream: ScriptedUpstream, client: str, stream: bool
) -> None:
    _, gateway = over
    upstream.answers(answering(Answer(WRITTEN)))
    reply, found = seen(gateway, client, stream, x_toolspeak_mode="force")
    assert [(call.name, call.arguments) for call in found.calls] == [("get_weather", {"city": "Bergen"})]
    assert found.calls[0].id.startswith("emulated_")
    assert (found.text.strip(), found.error, found.stop) == ("I look.", "", STOPS[client][1])
    assert reply.headers["x-toolspeak-warning"] == "tool calls emulated"
    (asked,) = upstream.asked
    assert not asked.json.get("tools")
    assert "get_weather" in asked.body.decode()

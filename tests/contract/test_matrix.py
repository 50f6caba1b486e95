"""Every client wire over every upstream wire, real requests, hostile bodies; and that these checks can fail."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from testkit import matrix, wire_mutations, wire_requests
from testkit.matrix import Cell
from toolspeak import wires
from toolspeak.ir.event import ArgsDelta, Event, TextDelta
from toolspeak.ir.request import Request
from toolspeak.wires import Stamp, Wire

PAIRS = [(client, upstream) for client in matrix.WIRES for upstream in matrix.WIRES]


@pytest.mark.parametrize(("client", "upstream"), PAIRS, ids=lambda name: name)
def test_any_client_wire_works_over_any_upstream_wire_wire2(client: str, upstream: str) -> None:
    cells = [cell for cell in matrix.cells() if (cell.client, cell.upstream) == (client, upstream)]
    assert len(cells) == 22
    assert [f"{cell.name}: {fault}" for cell in cells for fault in matrix.check(cell)] == []


@pytest.mark.parametrize("wire", matrix.WIRES)
def test_what_real_clients_send_comes_back_as_it_was(wire: str) -> None:
    goldens = [golden for golden in wire_requests.goldens() if golden.wire == wire]
    assert len(goldens) >= 12
    assert [fault for golden in goldens for fault in wire_requests.faults(golden)] == []


def test_hostile_bodies_are_decoded_or_refused_by_the_fields_name() -> None:
    ends = {wire_mutations.check(mutation) for mutation in wire_mutations.mutations(seed=7, most=1500)}
    assert ends == {"decoded", "refused"}


# ---------------------------------------------------------------- the checks can fail


class Changed:
    """An encoder that hands on other events than it gets."""

    def __init__(self, wire: Wire, request: Request, stamp: Stamp, change: Callable[[Event], Event]) -> None:
        self._inner = wire.new_encoder(request, stamp)
        self._change = change

    def encode(self, events: list[Event]) -> bytes:
        return self._inner.encode([self._change(event) for event in events])

    def keep_alive(self) -> bytes:
        return self._inner.keep_alive()


def shorter(event: Event) -> Event:
    return TextDelta(event.text[:-1]) if isinstance(event, TextDelta) else event


def another_argument(event: Event) -> Event:
    return ArgsDelta(event.id, event.json.replace("s", "S")) if isinstance(event, ArgsDelta) else event


@pytest.mark.parametrize(("change", "scenario"), [(shorter, "text"), (another_argument, "one call")])
def test_a_cell_notices_what_an_encoder_loses(
    change: Callable[[Event], Event], scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = wires.load("openai_chat")

    def new_encoder(request: Request, stamp: Stamp) -> Changed:
        return Changed(real, request, stamp, change)

    broken = replace(real, new_encoder=new_encoder)
    monkeypatch.setattr(wires, "load", {"openai_chat": broken}.__getitem__)
    assert matrix.check(Cell("openai_chat", "openai_chat", stream=True, scenario=scenario))


def test_a_golden_notices_a_lost_field(monkeypatch: pytest.MonkeyPatch) -> None:
    golden = next(
        golden for golden in wire_requests.goldens() if golden.wire == "openai_chat" and "tools" in golden.body
    )
    without = {key: value for key, value in golden.body.items() if key != "tools"}

    def again(_: wire_requests.Golden) -> dict[str, object]:
        return without

    monkeypatch.setattr(wire_requests, "again", again)
    assert wire_requests.faults(golden)


def test_a_mutation_notices_another_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    real = wires.load("openai_chat")

    def decode_request(body: bytes, _: str) -> Request:
        return json.loads(body)["no"]

    monkeypatch.setattr(wires, "load", {"openai_chat": replace(real, decode_request=decode_request)}.__getitem__)
    with pytest.raises(KeyError):
        wire_mutations.check(wire_mutations.Mutation("openai_chat", "", ("no",), "gone", b"{}"))

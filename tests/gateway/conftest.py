"""The upstream and the gateway of most tests here. A file whose gateway has other settings has a fixture of its own."""

from collections.abc import Generator

import pytest

from testkit.protocols import WIRES, answering
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, serving, towards


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    """Run an upstream that says "It is cold." until a test tells it something else."""
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        yield upstream


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    """Run a gateway with default settings in front of it."""
    with serving(config_of(towards(upstream))) as served:
        yield served


@pytest.fixture(scope="module", params=WIRES)
def over(request: pytest.FixtureRequest, upstream: ScriptedUpstream) -> Generator[tuple[str, Served]]:
    """Run a gateway in front of an upstream of each wire."""
    wire: str = request.param
    with serving(config_of(towards(upstream, wire))) as served:
        yield wire, served

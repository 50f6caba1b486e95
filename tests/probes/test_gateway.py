"""The gateway probes in the background, never on a request's path, and its later plans know better (CAP-3, CAP-4)."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from typing_extensions import override

from tests.gateway.scene import Reply, Served, config_of, serving, soon
from tests.probes.servers import Behaviour, Dropper, Failing, LeaksWithMany, Ollama, listening
from toolspeak.config.shape import Server, Upstream
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.upstreams import Auth


def tool(name: str) -> dict[str, object]:
    parameters = {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


DICE = tool("roll_dice")
SECONDS = 15.0


@contextmanager
def gateway(behaviour: Behaviour, depth: Depth | None = Depth.FULL, **more: Any) -> Generator[Served]:  # noqa: ANN401
    with listening(behaviour) as url:
        upstream = Upstream("up", url, behaviour.wire, Auth.NONE, **more)
        with serving(config_of(upstream, server=Server(probe=depth))) as served:
            yield served


def ask(served: Served, text: str = "Roll a die.", **more: object) -> Reply:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "tools": [DICE]}
    return served.post("/v1/chat/completions", body | more)


def plan(reply: Reply) -> str:
    assert reply.status == 200, reply.body
    return reply.headers["x-toolspeak-plan"]


def verdict(served: Served) -> Verdict:
    lister = served.app.gateway.directory._places["up"]
    return lister.route("m").learned.verdict("m")


def known(served: Served) -> bool:
    return soon(lambda: verdict(served).depth is Depth.FULL, SECONDS)


def calls(reply: Reply) -> list[str]:
    message = reply.json["choices"][0]["message"]
    return [call["function"]["name"] for call in message.get("tool_calls") or ()]


def test_a_silent_dropper_is_emulated_once_the_probe_has_said_so_cap3() -> None:
    dropper = Dropper()
    with gateway(dropper) as served:
        first = ask(served)
        assert plan(first).startswith("native")
        assert calls(first) == []
        assert known(served)
        later = ask(served)
        assert plan(later).startswith("force inline")
        assert calls(later) == ["roll_dice"]
        assert dropper.probes == 1
        assert "tools" not in dropper.turns[-1]
        models = served.ask("GET", "/v1/models").json["data"]
        assert models[0]["toolspeak"]["upstream_tools"] == "none"


def test_works_with_few_and_leaks_with_eleven_is_native_with_rescue_and_says_why_cap3() -> None:
    with gateway(LeaksWithMany()) as served:
        assert plan(ask(served)).startswith("native")
        assert known(served)
        found = verdict(served)
        assert (found.tools, found.why) == (
            Support.LEAKS,
            "native with 1 tool, but with 11 tools the call comes as text",
        )
        many = [tool(f"tool_{index}") for index in range(10)]
        later = ask(served, tools=[DICE, *many])
        assert "leaks some calls" in plan(later)
        assert calls(later) == ["roll_dice"]


def test_a_request_never_waits_for_a_probe_cap4() -> None:
    class Slow(Dropper):
        @override
        def page(self, path: str) -> object:
            found = super().page(path)
            if path == "/props":
                assert soon(lambda: False, 3.0) is False
            return found

    slow = Slow()
    with gateway(slow) as served:
        assert plan(ask(served)).startswith("native")
        assert soon(lambda: "/props" in slow.looks)
        turns = len(slow.turns)
        assert plan(ask(served)).startswith("native"), "it goes its way while the probe is under way"
        assert len(slow.turns) == turns + 1


@pytest.mark.parametrize(("depth", "turns"), [(Depth.OFF, 1), (Depth.LOOK, 1), (Depth.TOKENS, 3)])
def test_no_deeper_than_it_is_told_cap4(depth: Depth, turns: int) -> None:
    behaviour = Behaviour()
    with gateway(behaviour, depth) as served:
        ask(served)
        if depth is Depth.OFF:
            assert not soon(lambda: "/props" in behaviour.looks, 0.5)
        else:
            assert soon(lambda: verdict(served).depth is depth, SECONDS)
        assert len(behaviour.turns) == turns


def test_what_the_user_says_is_neither_probed_nor_overruled_cap3() -> None:
    dropper = Dropper()
    with gateway(dropper, facts=ModelFacts(tools=Support.NATIVE)) as served:
        for _ in range(2):
            assert plan(ask(served)).startswith("native")
        assert not soon(lambda: "/props" in dropper.looks, 0.5)
        assert len(dropper.turns) == 2


def test_a_request_without_tools_starts_no_probe_cap4() -> None:
    behaviour = Behaviour()
    with gateway(behaviour) as served:
        assert ask(served, tools=[]).status == 200
        assert not soon(lambda: "/props" in behaviour.looks, 0.5)


def test_a_model_is_probed_once_however_many_ask_for_it_cap4() -> None:
    ollama = Ollama("tools")
    with gateway(ollama) as served:
        for _ in range(5):
            ask(served)
        assert known(served)
        for _ in range(5):
            ask(served)
        assert ollama.probes == 1
        assert verdict(served).tools is Support.NATIVE


def test_what_fails_for_a_while_stays_unknown_and_is_found_out_later_cap4() -> None:
    failing = Failing()
    with gateway(failing, retries=0) as served:
        assert ask(served).status == 503
        assert verdict(served).tools is Support.UNKNOWN
        failing.fails = False
        assert plan(ask(served)).startswith("native")
        assert known(served)
        assert verdict(served).tools is Support.NATIVE


def test_a_gateway_that_ends_ends_its_probes_cap4() -> None:
    class Stuck(Behaviour):
        @override
        def page(self, path: str) -> object:
            found = super().page(path)
            soon(lambda: False, 1.0) if path == "/v1/models" and len(self.looks) > 1 else None
            return found

    stuck = Stuck()
    with gateway(stuck) as served:
        ask(served)
        assert soon(lambda: len(stuck.looks) > 1)
        prober = served.app.gateway.prober
        assert prober._running
    assert not prober._running

"""Verdicts in process: by endpoint, model and fingerprint, for a while, and one probe at a time (CAP-4)."""

from testkit.loopback import in_loop
from tests.unit.runtime.test_learned import Stood
from toolspeak.engine.verdict import Verdict
from toolspeak.facts.model import Support
from toolspeak.runtime.cache import LONG, LONGEST_PROBE, SEEN, SOON, Memory, Subject

BOX = Subject("http://127.0.0.1:8080/v1", "m")
NATIVE = Verdict(Support.NATIVE, 0.9, fingerprint="one")
NONE = Verdict(Support.NONE, 0.9, fingerprint="two")


@in_loop
async def test_a_verdict_is_found_for_its_endpoint_and_model_only_cap4() -> None:
    memory = Memory()
    await memory.keep(BOX, NATIVE)
    assert await memory.find(BOX) == NATIVE
    assert await memory.find(Subject(BOX.endpoint, "other")) is None
    assert await memory.find(Subject("http://127.0.0.1:9/v1", "m")) is None


@in_loop
async def test_a_server_that_comes_back_as_another_has_another_verdict_cap4() -> None:
    memory = Memory()
    await memory.keep(BOX, NATIVE)
    await memory.keep(BOX, NONE)
    assert await memory.find(BOX) == NONE
    assert await memory.find(BOX.of("one")) == NATIVE
    assert await memory.find(BOX.of("three")) is None
    await memory.seen(BOX.of("one"))
    assert await memory.find(BOX) == NATIVE


@in_loop
async def test_to_look_again_is_due_before_the_verdict_is_forgotten_cap4() -> None:
    clock = Stood()
    memory = Memory(clock)
    await memory.keep(BOX, NATIVE)
    clock.now += SEEN
    assert await memory.find(BOX) is None
    assert await memory.find(BOX.of("one")) == NATIVE
    clock.now += LONG - SEEN
    assert await memory.find(BOX.of("one")) is None


@in_loop
async def test_what_is_unknown_is_forgotten_soon_cap4() -> None:
    clock = Stood()
    memory = Memory(clock)
    await memory.keep(BOX, Verdict(stopped=True))
    clock.now += SOON - 1
    assert await memory.find(BOX) is not None
    clock.now += 1
    assert await memory.find(BOX) is None


@in_loop
async def test_one_probes_at_a_time_and_a_dead_one_not_for_ever_cap4() -> None:
    clock = Stood()
    memory = Memory(clock)
    token = await memory.claim(BOX)
    assert token
    assert await memory.claim(BOX.of("one")) == "", "a probe is one of a model, whatever it finds"
    assert await memory.claim(Subject(BOX.endpoint, "other"))
    await memory.release(BOX, "somebody else's")
    assert await memory.claim(BOX) == ""
    await memory.release(BOX, token)
    assert await memory.claim(BOX)
    clock.now += LONGEST_PROBE
    assert await memory.claim(BOX)


@in_loop
async def test_what_is_kept_is_bounded_p7() -> None:
    memory = Memory(most=3)
    for index in range(4):
        await memory.keep(Subject("e", str(index)), NATIVE)
    found = [await memory.find(Subject("e", str(index))) for index in range(4)]
    assert [each is not None for each in found] == [False, True, True, True]

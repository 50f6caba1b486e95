"""The decisions about several models, without processes: who is loaded, who waits, who yields (UP-3 to UP-6)."""

import random
from collections.abc import Hashable, Iterable
from math import inf

import pytest

from toolspeak.local.switch import PAUSE, Grant, Load, Place, Refuse, Switch, SwitchAction, Unload

OTHER = "another model needs its place"


def loaded(*names: str, most: int = 1, idle: float = 0.0, now: float = 0.0) -> Switch:
    """Return a switch in which these of a, b, c were asked for, loaded and answered, one after another."""
    switch = Switch(["a", "b", "c"], most, idle)
    for name in names:
        switch.ask(name, f"first {name}", now)
        switch.has_loaded(name, now)
        switch.done(name, f"first {name}", now)
    return switch


def test_a_request_loads_its_model_and_waits_for_it() -> None:
    switch = Switch(["a", "b"], 1, 0)
    assert switch.ask("a", 1, 0.0) == [Load("a")]
    assert switch.ask("a", 2, 0.1) == []
    assert switch.has_loaded("a", 0.2) == [Grant(1), Grant(2)]
    assert switch.ask("a", 3, 0.3) == [Grant(3)]


def test_open_answers_finish_before_their_model_is_unloaded() -> None:
    switch = loaded("a")
    assert switch.ask("a", 1, 1.0) == [Grant(1)]
    assert switch.ask("b", 2, 1.0) == []
    assert switch.ask("a", 3, 1.0) == [], "a yields: a new request for it waits behind b"
    assert switch.done("a", 1, 2.0) == [Unload("a", OTHER)]
    assert switch.has_unloaded("a", 3.0) == [Load("b")]
    assert switch.has_loaded("b", 4.0) == [Grant(2)]
    assert switch.done("b", 2, 5.0) == [Unload("b", OTHER)]
    assert switch.has_unloaded("b", 6.0) == [Load("a")]
    assert switch.has_loaded("a", 7.0) == [Grant(3)]


def test_a_model_answers_all_that_waited_for_it_though_another_waits() -> None:
    switch = loaded("a")
    switch.ask("a", "open", 0.0)
    for ticket, name in enumerate("bcbc"):
        assert switch.ask(name, ticket, 0.0) == []
    switch.done("a", "open", 1.0)
    assert switch.has_unloaded("a", 1.0) == [Load("b")]
    assert switch.has_loaded("b", 2.0) == [Grant(0), Grant(2)]
    assert switch.ask("b", "late", 2.0) == []
    switch.done("b", 0, 3.0)
    assert switch.done("b", 2, 3.0) == [Unload("b", OTHER)]
    assert switch.has_unloaded("b", 3.0) == [Load("c")]


def test_a_client_that_leaves_takes_its_wish_along() -> None:
    switch = loaded("a")
    switch.ask("a", 1, 0.0)
    switch.ask("b", 2, 0.0)
    switch.ask("a", 3, 0.0)
    assert switch.done("b", 2, 1.0) == [Grant(3)], "no other model waits: a need not yield any more"
    assert switch.done("a", 1, 2.0) == []


def test_the_longest_unused_yields_first() -> None:
    switch = loaded("a", "b", most=2)
    switch.ask("a", 1, 5.0)
    switch.done("a", 1, 6.0)
    assert switch.ask("c", 2, 7.0) == [Unload("b", OTHER)]


def test_one_that_answers_yields_after_one_that_is_idle() -> None:
    switch = loaded("a", "b", most=2)
    switch.ask("a", 1, 5.0)
    switch.ask("b", 2, 6.0)
    switch.done("b", 2, 7.0)
    assert switch.ask("c", 3, 8.0) == [Unload("b", OTHER)]


def test_an_idle_model_is_unloaded_and_its_time_begins_with_its_last_answer() -> None:
    switch = loaded("a", idle=10.0)
    assert switch.due() == 10.0
    switch.ask("a", 1, 9.0)
    assert switch.due() == inf
    assert switch.tick(30.0) == []
    switch.done("a", 1, 31.0)
    assert switch.due() == 41.0
    assert switch.tick(40.9) == []
    assert switch.tick(41.0) == [Unload("a", "it was idle")]
    assert switch.has_unloaded("a", 41.1) == []
    assert switch.place("a") is Place.UNLOADED


def test_without_idle_it_stays() -> None:
    switch = loaded("a")
    assert switch.due() == inf
    assert switch.tick(1e9) == []


def test_a_background_request_loads_nothing_and_does_not_keep_a_model_loaded() -> None:
    switch = loaded("a", idle=10.0)
    assert not switch.ask_if_loaded("b", 1)
    assert switch.ask_if_loaded("a", 2)
    switch.done("a", 2, 9.0, counts=False)
    assert switch.due() == 10.0
    switch.ask("a", 3, 9.0)
    switch.ask("b", 4, 9.0)
    assert not switch.ask_if_loaded("a", 5), "it yields"


def test_a_model_that_fails_tells_those_that_wait_and_blocks_no_other() -> None:
    switch = loaded("a")
    assert switch.ask("b", 1, 1.0) == [Unload("a", OTHER)]
    switch.ask("a", 2, 1.0)
    assert switch.has_unloaded("a", 2.0) == [Load("b")]
    assert switch.has_failed("b", "no such tensor", 3.0) == [Refuse(1, "no such tensor"), Load("a")]
    assert switch.has_loaded("a", 4.0) == [Grant(2)]
    assert switch.ask("b", 3, 5.0) == [Refuse(3, "no such tensor")], "a is not unloaded for it again so soon"
    switch.done("a", 2, 5.0)
    assert switch.ask("b", 4, 3.0 + PAUSE) == [Unload("a", OTHER)]


def test_a_model_that_is_lost_while_it_answers_gives_its_place_back() -> None:
    switch = loaded("a")
    switch.ask("a", 1, 1.0)
    switch.ask("b", 2, 1.0)
    assert switch.has_failed("a", "it crashed", 2.0) == [Load("b")]
    assert switch.done("a", 1, 2.1) == []


def test_one_that_is_asked_for_while_it_is_unloaded_is_loaded_again() -> None:
    switch = loaded("a", idle=10.0)
    switch.tick(10.0)
    assert switch.ask("a", 1, 10.5) == []
    assert switch.has_unloaded("a", 11.0) == [Load("a")]


class World:
    """Does at random what a switch says, and checks what must always hold."""

    def __init__(self, seed: int, most: int) -> None:
        self.random = random.Random(seed)
        self.most = most
        self.switch = Switch("abcd", most, 5.0)
        self.now = 0.0
        self.model_of: dict[Hashable, str] = {}
        self.waiting: list[Hashable] = []
        self.open: set[Hashable] = set()
        self.loading: set[str] = set()
        self.leaving: set[str] = set()
        self.ready: set[str] = set()

    def do(self, actions: Iterable[SwitchAction]) -> None:
        for action in actions:
            match action:
                case Load(name):
                    assert name not in self.loading | self.ready | self.leaving
                    self.loading.add(name)
                case Unload(name):
                    assert name in self.ready
                    assert not any(self.model_of[each] == name for each in self.open), "an open answer is cut"
                    self.ready.discard(name)
                    self.leaving.add(name)
                case Grant(ticket):
                    assert self.model_of[ticket] in self.ready
                    self.waiting.remove(ticket)
                    self.open.add(ticket)
                case Refuse(ticket):
                    self.waiting.remove(ticket)
        assert len(self.loading | self.ready | self.leaving) <= self.most

    def step(self, *, asks: bool) -> None:
        self.now += self.random.random()
        events = [*((self.finish, each) for each in sorted(self.open, key=str)), (self.tick, "")]
        events += [(self.load, each) for each in sorted(self.loading)]
        events += [(self.leave, each) for each in sorted(self.leaving)]
        events += [(self.ask, self.random.choice("abcd"))] * 3 * asks
        event, subject = self.random.choice(events)
        event(subject)

    def ask(self, name: Hashable) -> None:
        ticket = len(self.model_of)
        self.model_of[ticket] = str(name)
        self.waiting.append(ticket)
        self.do(self.switch.ask(str(name), ticket, self.now))

    def finish(self, ticket: Hashable) -> None:
        self.open.discard(ticket)
        self.do(self.switch.done(self.model_of[ticket], ticket, self.now))

    def load(self, name: Hashable) -> None:
        self.loading.discard(str(name))
        if self.random.random() < 0.1:
            self.do(self.switch.has_failed(str(name), "broken", self.now))
            return
        self.ready.add(str(name))
        self.do(self.switch.has_loaded(str(name), self.now))

    def leave(self, name: Hashable) -> None:
        self.leaving.discard(str(name))
        self.do(self.switch.has_unloaded(str(name), self.now))

    def tick(self, _: Hashable) -> None:
        self.do(self.switch.tick(self.now))


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_places_are_kept_and_every_request_is_answered(seed: int) -> None:
    world = World(seed, 1 + seed % 3)
    for _ in range(400):
        world.step(asks=True)
    for _ in range(4000):
        if not (world.waiting or world.open):
            break
        world.step(asks=False)
    assert not world.waiting
    assert not world.open


@pytest.mark.parametrize("most", [1, 2])
def test_a_busy_model_starves_no_other(most: int) -> None:
    """Two clients keep `a` busy without a gap. `b` is asked for once, and answered after what was open then."""
    switch = loaded("a", most=most)
    switch.ask("a", "x", 0.0)
    if most > 1:
        switch.ask("c", "held", 0.0)
        switch.has_loaded("c", 0.0)
    switch.ask("b", "wish", 1.0)
    assert switch.ask("a", "y", 1.0) == [], "new work for a waits behind the wish"
    assert switch.done("a", "x", 2.0) == [Unload("a", OTHER)]
    assert switch.has_unloaded("a", 2.0)[0] == Load("b")
    assert Grant("wish") in switch.has_loaded("b", 3.0)

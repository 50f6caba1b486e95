"""The conversations can be played to the end, and wrong answers in them are detected."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from typing_extensions import override

from bench.accuracy.later_talks import LATER_TALKS
from bench.accuracy.score import Delivered
from bench.accuracy.speak import Said
from bench.accuracy.split import Split, split_of
from bench.accuracy.talks import MOST_ROUNDS, TALKS, Played, Talk, play
from toolspeak.ir.message import Message, Role
from toolspeak.ir.tool import Tool

Turn = tuple[Sequence[tuple[str, dict[str, object]]], str]
"""Calls that are made at once, and then the answer."""


def turn(*calls: tuple[str, dict[str, object]], says: str = "Done.") -> Turn:
    return calls, says


def call(name: str, /, **arguments: object) -> tuple[str, dict[str, object]]:
    return name, arguments


PLAYED_WELL: dict[str, tuple[Turn, ...]] = {
    "warm kitchen": (
        turn(call("read_room", room="kitchen"), says="It is 17.5 °C."),
        turn(call("set_target", room="kitchen", celsius=21)),
    ),
    "coldest room": (
        turn(call("read_room", room="Bedroom"), says="19 degrees"),
        turn(call("read_room", room="office"), says="23.5°C"),
        turn(call("set_target", room="office", celsius=20.0)),
    ),
    "two rooms": (
        turn(call("set_target", room="kitchen", celsius=20), call("set_target", room="bedroom", celsius=18)),
        turn(says="You are welcome."),
    ),
    "a day's events": (
        turn(call("list_events", day="Friday"), says="A team lunch at 11."),
        turn(call("add_event", day="Friday", time="16:00", title="Haircut")),
    ),
    "cancel one": (
        turn(call("list_events", day="Monday"), says="Dentist and yoga."),
        turn(call("cancel_event", day="Monday", time="15:00")),
        turn(call("list_events", day="Monday"), says="Only the dentist."),
    ),
    "move an event": (
        turn(call("cancel_event", day="Monday", time="09:30")),
        turn(call("add_event", day="Tuesday", time="10:00", title="Dentist")),
    ),
    "read a file": (
        turn(call("list_files"), says="draft.md, notes.txt and old.log"),
        turn(call("read_file", path="notes.txt"), says="The code is 4711."),
    ),
    "copy a file": (
        turn(call("read_file", path="draft.md"), says="It says: Hello"),
        turn(call("write_file", path="final.md", content="Goodbye")),
        turn(call("delete_file", path="old.log")),
    ),
    "tidy up": (turn(call("delete_file", path="old.log")), turn(call("list_files"), says="notes.txt, draft.md")),
    "an open order": (
        turn(call("order_status", order=1041), says="It is open."),
        turn(call("cancel_order", order=1041)),
    ),
    "a shipped order": (
        turn(call("cancel_order", order=1042), says="It has shipped already."),
        turn(call("order_status", order=1042), says="Two desks."),
    ),
    "a new order": (
        turn(call("place_order", item="chair", quantity=3), says="Order 1043 is placed."),
        turn(call("order_status", order=1043), says="It is open."),
    ),
    "a transfer": (
        turn(call("get_balance", account="savings"), says="8,300.00"),
        turn(call("transfer", source="savings", target="travel", amount=200)),
        turn(call("get_balance", account="travel"), says="290.0 now"),
    ),
    "too much": (
        turn(call("transfer", source="travel", target="checking", amount=500), says="There is not enough."),
        turn(call("transfer", source="travel", target="checking", amount=50)),
    ),
    "two balances": (
        turn(call("get_balance", account="checking"), call("get_balance", account="travel"), says="1250 and 90."),
        turn(call("transfer", source="checking", target="travel", amount=100)),
    ),
    "lights out": (
        turn(call("list_lights"), says="Kitchen and garage."),
        turn(call("switch_light", room="garage", on=False)),
    ),
    "light up": (
        turn(call("switch_light", room="hall", on=True)),
        turn(call("switch_light", room="kitchen", on=False)),
        turn(call("list_lights"), says="hall, garage"),
    ),
    "a shopping list": (
        turn(call("add_item", item="cheese")),
        turn(call("remove_item", item="bread")),
        turn(call("show_list"), says="Milk, apples and cheese."),
    ),
    "no tool needed": (
        turn(call("show_list"), says="milk, bread, apples"),
        turn(says="It is Paris."),
        turn(call("remove_item", item="apples")),
    ),
    "a message": (
        turn(call("find_contact", name="Grace"), says="It is 555 0199."),
        turn(call("send_message", phone="5550199", text="See you at noon.")),
        turn(call("find_contact", name="Ada"), says="555-0142"),
    ),
}


PLAYED_LATER: dict[str, tuple[Turn, ...]] = {
    "where the manager sits": (
        turn(call("find_person", name="Linus"), call("room_of", name="Margaret"), says="In room C40."),
        turn(call("find_person", name="Linus"), says="To the kernel team."),
    ),
    "who sits where": (
        turn(call("room_of", name="Katherine"), says="In A03."),
        turn(call("find_person", name="Margaret"), says="It is Katherine."),
    ),
    "a parcel by its name": (
        turn(call("find_customer", name="Noether"), call("list_parcels", customer="K7"), says="In Hamburg."),
        turn(call("hold_parcel", parcel="P31")),
    ),
    "hold by number": (
        turn(call("hold_parcel", parcel="P32")),
        turn(call("find_customer", name="Turing"), says="It is K9."),
    ),
    "two timers": (
        turn(call("set_timer", name="pasta", minutes=9), call("set_timer", name="eggs", minutes=6)),
        turn(call("list_timers"), says="Bread, pasta and eggs."),
    ),
    "bread is done": (
        turn(call("list_timers"), says="Another 40 minutes."),
        turn(call("cancel_timer", name="bread")),
    ),
    "a train to Basel": (
        turn(call("next_train", origin="Bern", destination="Basel"), says="At 10:34."),
        turn(call("reserve_seat", train="IC61", seats=2)),
        turn(call("next_train", origin="Basel", destination="Bern"), says="At 18:59."),
    ),
    "two steps at once": (
        turn(call("next_train", origin="Basel", destination="Bern"), call("reserve_seat", train="IC67", seats=3)),
        turn(says="You are welcome."),
    ),
    "louder": (
        turn(call("player_status"), says="Björk."),
        turn(call("set_volume", percent=55)),
    ),
    "another artist": (
        turn(call("play_music", artist="Nina Simone"), call("set_volume", percent=20)),
        turn(call("player_status"), says="20 percent."),
    ),
    "borrow a book": (
        turn(call("search_books", author="Tove Jansson"), says="The Summer Book and Fair Play."),
        turn(call("borrow_book", number=501)),
    ),
    "a lent book": (
        turn(call("borrow_book", number=502), says="It is lent until Friday."),
        turn(call("search_books", author="Calvino"), says="Yes: Invisible Cities."),
    ),
}
ALL_TALKS = (*TALKS, *LATER_TALKS)


@dataclass
class Player:
    """Gives the scripted answers, and records what it received."""

    turns: Sequence[Turn]
    said: list[Said] = field(default_factory=list[Said])
    heard: list[Message] = field(default_factory=list[Message])

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        self.heard = list(messages)
        if not self.said:
            calls, says = self.turns[sum(message.role is Role.USER for message in messages) - 1]
            made = tuple(Delivered(name, json.dumps(arguments)) for name, arguments in calls)
            assert all(call.name in {tool.name for tool in tools} for call in made)
            self.said = [*([Said(calls=made)] if made else []), Said(says)]
        return self.said.pop(0)


def played(talk: Talk, turns: Sequence[Turn]) -> Played:
    return asyncio.run(play(talk, Player(turns)))


def talk_of(id: str) -> Talk:
    return next(talk for talk in TALKS if talk.id == id)


def test_there_are_twenty_talks_of_two_to_four_turns() -> None:
    assert [talk.id for talk in TALKS] == list(PLAYED_WELL)
    assert len(TALKS) == 20
    assert all(2 <= len(talk.steps) <= 4 for talk in ALL_TALKS)


def test_what_was_written_later_is_held_out() -> None:
    assert [talk.id for talk in LATER_TALKS] == list(PLAYED_LATER)
    assert {split_of(talk.id) for talk in LATER_TALKS} == {Split.HELD_OUT}


@pytest.mark.parametrize("talk", ALL_TALKS, ids=lambda talk: talk.id)
def test_a_talk_that_is_played_well_is_right(talk: Talk) -> None:
    told = played(talk, (PLAYED_WELL | PLAYED_LATER)[talk.id])
    assert told.right, told.notes
    assert told.valid


@pytest.mark.parametrize("talk", ALL_TALKS, ids=lambda talk: talk.id)
def test_a_talk_without_any_call_is_wrong(talk: Talk) -> None:
    """Either the answers lack what only tools could tell, or the state is not what it must be."""
    told = played(talk, [turn(says="I did it.") for _ in talk.steps])
    assert not told.right
    assert told.notes


def test_an_answer_must_mention_what_was_found_as_a_whole_word() -> None:
    talk, (_, second) = talk_of("warm kitchen"), PLAYED_WELL["warm kitchen"]
    told = played(talk, [turn(call("read_room", room="kitchen"), says="It is 117.55 °C."), second])
    assert not told.right
    assert "17" in told.notes[0]


def test_an_invalid_call_is_seen_and_answered_with_an_error() -> None:
    talk = talk_of("warm kitchen")
    player = Player([turn(call("read_room", place="kitchen"), says="17.5"), PLAYED_WELL["warm kitchen"][1]])
    told = asyncio.run(play(talk, player))
    assert told.right
    assert not told.valid
    results = [message for message in player.heard if message.role is Role.TOOL]
    assert "bad arguments" in str(results[0].parts)


def test_a_model_that_calls_on_and_on_is_stopped() -> None:
    class Endless(Player):
        @override
        async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
            self.heard.append(messages[-1])
            return Said(calls=(Delivered(tools[0].name, "{}"),))

    player = Endless([])
    told = asyncio.run(play(TALKS[0], player))
    assert not told.right
    assert len(player.heard) == MOST_ROUNDS
    assert "no answer" in told.failure


def test_talks_do_not_change_each_other() -> None:
    talk = talk_of("a transfer")
    assert played(talk, PLAYED_WELL[talk.id]).right
    assert played(talk, PLAYED_WELL[talk.id]).right

"""Rounds are kept compact, and written out in the order in which everything was said (RUN-2)."""

from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.round import Compact, Round, expand, expand_rounds

OSLO, BERGEN = Call("1", "weather", '{"city": "Oslo"}'), Call("2", "weather", '{"city": "Bergen"}')
RESULTS = (Result("1", (Text("3"),), "weather"), Result("2", (Text("5"),), "weather"))
SAID = Message(Role.ASSISTANT, (Text("It is colder in Oslo."),))
ASKED = Message(Role.USER, (Text("Where is it colder?"),))
ROUND = Round((Text("Let me check."),), (OSLO, BERGEN), RESULTS)


def assistant(*parts: Text | Reasoning | Call) -> Message:
    return Message(Role.ASSISTANT, parts)


def test_a_round_is_its_text_its_calls_and_their_results_run2() -> None:
    assert expand_rounds([ROUND]) == (
        assistant(Text("Let me check.")),
        assistant(OSLO, BERGEN),
        Message(Role.TOOL, RESULTS),
    )


def test_a_round_without_text_has_no_message_for_it_run2() -> None:
    assert expand_rounds([Round((), (OSLO,), RESULTS[:1])]) == (assistant(OSLO), Message(Role.TOOL, RESULTS[:1]))


def test_rounds_come_before_the_final_text_and_messages_in_their_order_run2() -> None:
    kept = [Compact(ASKED), Compact(SAID, (ROUND, ROUND)), Compact(ASKED)]
    rounds = expand_rounds([ROUND, ROUND])
    assert expand(kept) == (ASKED, *rounds, SAID, ASKED)
    assert len(rounds) == 6


def test_without_a_final_text_there_is_no_message_for_it_run2() -> None:
    assert expand([Compact(assistant(), (ROUND,))]) == expand_rounds([ROUND])


def test_an_empty_message_without_rounds_stays_run2() -> None:
    assert expand([Compact(assistant())]) == (assistant(),)


def test_a_signature_alone_stays_in_front_of_its_call_run2() -> None:
    seal = Reasoning("", "c2ln")
    sealed = Round((Reasoning("Cold?"), Text("Let me check."), seal), (OSLO,), RESULTS[:1])
    assert expand_rounds([sealed])[:2] == (
        assistant(Reasoning("Cold?"), Text("Let me check.")),
        assistant(seal, OSLO),
    )
    assert expand_rounds([Round((seal,), (OSLO,), RESULTS[:1])])[0] == assistant(seal, OSLO)


def test_the_text_of_a_round_is_what_people_saw_run2() -> None:
    assert Round((Reasoning("Hm."), Text("Let me "), Text("check.")), (OSLO,), RESULTS[:1]).text == "Let me check."

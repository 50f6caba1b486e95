"""Histories put in order: every call answered right behind it, once; nothing lost; linear time (P8)."""

import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.golden import CASES
from testkit.timing import BAR, growth
from toolspeak.ir.message import Call, Image, Message, Part, Reasoning, Result, Role, Text, Vendor
from toolspeak.ir.quirks import QUIRKS, IdForm, Quirks
from toolspeak.ir.request import Request
from toolspeak.wires import load
from toolspeak.wires.shared.history import NO_RESULT, add_result, instructions_first, link_history, pair_history

FAILURES = CASES / "failures.jsonl"
WIRE = load("openai_chat")
PIXEL = "data:image/png;base64,iVBORw0KGgo="

Body = dict[str, Any]
History = list[Message]


def call(id: str, name: str = "f") -> Call:
    return Call(id, name, "{}")


def result(id: str, text: str = "x", name: str = "f") -> Result:
    return Result(id, (Text(text),), name)


def assistant(*parts: Part) -> Message:
    return Message(Role.ASSISTANT, parts)


def tool(*parts: Part) -> Message:
    return Message(Role.TOOL, parts)


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def answers(messages: tuple[Message, ...]) -> dict[str, str]:
    """Return the text of the result of each call."""
    results = [part for message in messages for part in message.parts if isinstance(part, Result)]
    return {result.call_id: "".join(words_of(result)) for result in results}


def words_of(part: Part) -> list[str]:
    """Return all texts of a part."""
    if isinstance(part, Result):
        return [piece.text for piece in part.content if isinstance(piece, Text)]
    return [part.text] if isinstance(part, Text | Reasoning) else []


# The golden cases, through a wire


def golden() -> dict[str, Body]:
    cases = [json.loads(line) for line in FAILURES.read_text(encoding="utf-8").splitlines()]
    return {case["id"][:6]: case for case in cases}


def read(messages: list[Body]) -> Request:
    return WIRE.decode_request(json.dumps({"model": "m", "messages": messages}).encode(), "/v1/chat/completions")


def sent(messages: list[Body], quirks: Quirks = QUIRKS) -> list[Body]:
    """Read messages as a client sends them, and write them as the upstream wants them."""
    return json.loads(WIRE.encode_request(read(messages), quirks).body)["messages"]


def chat_call(id: str, name: str = "f") -> Body:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def chat_calls(*calls: Body, **more: object) -> Body:
    return {"role": "assistant", "tool_calls": list(calls), **more}


def test_mistral_gets_nine_letters_and_digits_on_call_and_result_wire6_id_001() -> None:
    messages = golden()["id-001"]["messages"]
    asked, answered = sent(messages, Quirks(ids=IdForm.MISTRAL))
    (one,) = asked["tool_calls"]
    assert len(one["id"]) == 9
    assert one["id"].isalnum()
    assert one["id"].isascii()
    assert answered == {"role": "tool", "tool_call_id": one["id"], "content": "3C"}
    assert sent(messages, Quirks(ids=IdForm.MISTRAL)) == [asked, answered]


def test_kimi_gets_its_own_ids_counted_over_the_conversation_wire6_id_002() -> None:
    messages: list[Body] = golden()["id-002"]["messages"]
    asked, answered = sent(messages, Quirks(ids=IdForm.KIMI))
    assert asked["tool_calls"][0]["id"] == "functions.shell:0"
    assert answered["tool_call_id"] == "functions.shell:0"
    more = [chat_calls(chat_call("x", "get_time"), chat_call("y", "shell")), {"role": "tool", "tool_call_id": "y"}]
    longer = sent([*messages, *more], Quirks(ids=IdForm.KIMI))
    assert longer[:2] == [asked, answered]
    assert [one["id"] for one in longer[2]["tool_calls"]] == ["functions.get_time:1", "functions.shell:2"]
    assert [message["tool_call_id"] for message in longer[3:]] == ["functions.get_time:1", "functions.shell:2"]


def test_a_call_that_nobody_answered_gets_an_error_in_its_place_id_004() -> None:
    asked, first, second, said = sent(golden()["id-004"]["messages"])
    assert [one["id"] for one in asked["tool_calls"]] == ["a", "b"]
    assert first == {"role": "tool", "tool_call_id": "a", "content": NO_RESULT}
    assert second == {"role": "tool", "tool_call_id": "b", "content": "x"}
    assert said == {"role": "user", "content": "go on"}
    (results,) = [message.parts for message in pair_history(read(golden()["id-004"]["messages"]).messages)[1:2]]
    assert [part.is_error for part in results if isinstance(part, Result)] == [True, False]


def test_text_between_a_call_and_its_result_is_said_before_the_call_id_005() -> None:
    asked, answered = sent(golden()["id-005"]["messages"])
    assert asked["content"] == "Running it now."
    assert [one["id"] for one in asked["tool_calls"]] == ["a"]
    assert answered == {"role": "tool", "tool_call_id": "a", "content": "x"}


def test_results_come_in_the_order_of_their_calls_and_in_one_message_id_006() -> None:
    messages = golden()["id-006"]["messages"]
    asked, *answered = sent(messages)
    assert [one["id"] for one in asked["tool_calls"]] == ["a", "b"]
    assert [(message["tool_call_id"], message["content"]) for message in answered] == [("a", "1"), ("b", "2")]
    _, results = pair_history(read(messages).messages)
    assert [part.call_id for part in results.parts if isinstance(part, Result)] == ["a", "b"]


def test_content_is_null_only_for_calls_without_text_id_008() -> None:
    messages = golden()["id-008"]["messages"]
    assert sent(messages)[0]["content"] is None
    assert sent(messages, Quirks(null_content=False))[0]["content"] == ""
    assert sent([{"role": "assistant", "content": ""}])[0]["content"] == ""
    for quirks in (QUIRKS, Quirks(null_content=False)):
        assert sent([chat_calls(chat_call("a"), content="Now.")], quirks)[0]["content"] == "Now."
    assert sent([chat_calls(chat_call("a"), content=None)])[0]["content"] is None


def test_an_object_for_a_result_is_written_as_json_ro_003() -> None:
    (message,) = golden()["ro-003"]["messages"]
    _, answered = sent([chat_calls(chat_call("a", "read_file")), message])
    assert json.loads(answered["content"]) == {"ok": True, "n": 2}
    _, answered = sent([chat_calls(chat_call("a")), {**message, "content": {"größe": "€", "none": None}}])
    assert answered["content"] == '{"größe":"€","none":null}'


def test_a_result_of_no_call_is_said_by_the_user_ro_003() -> None:
    (said,) = sent(golden()["ro-003"]["messages"])
    head, body = said["content"].split("\n")
    assert (said["role"], head, json.loads(body)) == ("user", "[result of a call a]", {"ok": True, "n": 2})


def test_an_image_in_a_result_follows_in_a_message_of_the_user_ro_004() -> None:
    (message,) = golden()["ro-004"]["messages"]
    _, answered, said = sent([chat_calls(chat_call("a", "screenshot")), message])
    assert [part["text"] for part in answered["content"]] == ["done", "[image: it follows in the next message]"]
    assert said == {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}


def test_an_image_follows_behind_all_results_of_its_message_ro_004() -> None:
    (message,) = golden()["ro-004"]["messages"]
    other = {"role": "tool", "tool_call_id": "b", "content": "y"}
    written = sent([chat_calls(chat_call("a"), chat_call("b")), message, other])
    assert [one["role"] for one in written] == ["assistant", "tool", "tool", "user"]


def test_an_image_stays_in_its_result_where_the_upstream_allows_it_ro_004() -> None:
    (message,) = golden()["ro-004"]["messages"]
    _, answered = sent([chat_calls(chat_call("a")), message], Quirks(image_results=True))
    assert answered["content"] == message["content"]


# Linking


def test_results_that_stand_behind_each_other_are_one_message() -> None:
    messages = [user("x")]
    add_result(messages, result("a"))
    add_result(messages, result("b"))
    assert messages == [user("x"), tool(result("a"), result("b"))]


def test_a_history_that_is_linked_comes_back_as_it_was() -> None:
    history = (user("u"), assistant(Text("t"), call("a")), tool(result("a")), assistant(Text("done")))
    assert link_history(history) == history
    assert all(new is old for new, old in zip(link_history(history), history, strict=True))


def test_a_result_learns_the_name_of_its_call() -> None:
    _, answered = link_history([assistant(call("a", "g")), tool(result("a", name=""))])
    assert answered.parts == (result("a", name="g"),)


def test_calls_without_ids_get_one_each() -> None:
    (asked,) = link_history([assistant(call(""), call(""), call(""))])
    ids = [part.id for part in asked.parts if isinstance(part, Call)]
    assert all(ids)
    assert len(set(ids)) == 3


def test_results_without_ids_are_paired_by_the_tools_name_and_else_by_position() -> None:
    history = [assistant(call("a", "f"), call("b", "g"), call("c", "f")), tool(result("", "1", "g"))]
    history += [tool(result("", "2", "f")), tool(result("", "3", "unknown"))]
    assert answers(pair_history(history)) == {"b": "1", "a": "2", "c": "3"}


def test_an_id_that_comes_again_in_a_later_round_is_another_call() -> None:
    history = pair_history([assistant(call("a")), tool(result("a", "1")), assistant(call("a")), tool(result("a", "2"))])
    ids = [part.id for message in history for part in message.parts if isinstance(part, Call)]
    assert ids[0] == "a"
    assert ids[1] != "a"
    assert answers(history) == {"a": "1", ids[1]: "2"}


def test_an_id_that_comes_twice_in_one_message_is_answered_in_turn() -> None:
    history = pair_history(
        [assistant(call("a", "f"), call("a", "g")), tool(result("a", "1", ""), result("a", "2", ""))]
    )
    assert list(answers(history).values()) == ["1", "2"]
    assert [part.name for part in history[1].parts if isinstance(part, Result)] == ["f", "g"]


def test_an_id_that_was_made_up_is_never_one_that_the_client_used_before() -> None:
    (asked,) = link_history([assistant(call("call_1"), call(""), call("call_3"), call(""))])
    ids = [part.id for part in asked.parts if isinstance(part, Call)]
    assert len(set(ids)) == 4
    assert (ids[0], ids[2]) == ("call_1", "call_3")


def test_an_old_call_without_an_id_is_not_answered_in_a_later_round() -> None:
    history = [assistant(call("", "f"), call("", "g")), tool(result("", "1", "g"))]
    history += [assistant(call("", "f")), tool(result("", "2", "f"))]
    assert list(answers(pair_history(history)).values()) == [NO_RESULT, "1", "2"]


def test_a_call_without_an_id_is_answered_by_a_result_that_has_one() -> None:
    history = pair_history([assistant(call("", "f"), call("", "g")), tool(result("y", "1", "g"), result("z", "2", ""))])
    assert list(answers(history).values()) == ["2", "1"]


# Putting in order


def test_a_result_that_comes_late_is_moved_behind_its_call() -> None:
    history = [assistant(call("a")), user("u"), assistant(Text("t")), user("v"), tool(result("a"))]
    assert pair_history(history) == (
        assistant(call("a")),
        tool(result("a")),
        user("u"),
        assistant(Text("t")),
        user("v"),
    )


def test_calls_in_messages_of_their_own_are_melted_into_one() -> None:
    history = [assistant(call("a")), assistant(call("b")), tool(result("b")), tool(result("a"))]
    assert pair_history(history) == (assistant(call("a"), call("b")), tool(result("a"), result("b")))


def test_what_stands_before_a_call_in_its_own_message_stays_there() -> None:
    thought = Reasoning("t", "signature")
    history = [assistant(thought, call("a")), assistant(Text("Now.")), tool(result("a"))]
    assert pair_history(history)[0] == assistant(Text("Now."), thought, call("a"))


def test_a_message_of_user_and_results_keeps_what_the_user_said() -> None:
    said = Message(Role.USER, (result("a"), Text("and now?")))
    assert pair_history([assistant(call("a")), said]) == (assistant(call("a")), tool(result("a")), user("and now?"))


def test_a_result_of_no_call_becomes_text_of_the_user() -> None:
    picture = Result("z", (Text("1"), Image("image/png", "AA=="), Text("2")), "g")
    text = Text("[result of g z]\n1\n2")
    assert pair_history([tool(picture)]) == (Message(Role.USER, (text, Image("image/png", "AA=="))),)
    assert pair_history([tool(Result("", (Text("1"),)))]) == (user("[result of a call ]\n1"),)


def test_the_latest_call_of_an_id_gets_the_result() -> None:
    history = [assistant(call("a")), user("stop"), assistant(call("a")), tool(result("a", "1"))]
    assert list(answers(pair_history(history)).values()) == [NO_RESULT, "1"]


def test_a_result_that_comes_before_its_call_answers_nothing() -> None:
    history = [tool(result("a", "old")), assistant(call("a")), tool(result("a", "new"))]
    ordered = pair_history(history)
    assert answers(ordered) == {"a": "new"}
    assert ordered[0] == user("[result of f a]\nold")


def test_a_call_without_id_gets_none_that_a_result_has() -> None:
    history = [tool(result("call_0", "old")), assistant(call(""))]
    assert list(answers(pair_history(history)).values()) == [NO_RESULT]


def test_a_result_without_id_belongs_to_a_call_without_id() -> None:
    history = [assistant(call("a"), call("")), tool(result("", "1"), result("a", "2"))]
    assert list(answers(pair_history(history)).values()) == ["2", "1"]


def test_messages_that_come_to_stand_behind_each_other_are_one() -> None:
    history = [assistant(call("a")), user("u"), assistant(Text("t")), tool(result("a")), assistant(call("b"))]
    once = pair_history(history)
    assert pair_history(once) == once
    assert [message.role for message in once] == [Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT, Role.TOOL]


def test_a_second_result_of_a_call_becomes_text_of_the_user_p1() -> None:
    asked = assistant(call("a"))
    assert pair_history([asked, tool(result("a", "1"), result("a", "2"))]) == (
        asked,
        tool(result("a", "1")),
        user("[result of f a]\n2"),
    )


def test_messages_keep_their_vendors_fields() -> None:
    vendor = Vendor("w", {"name": "x"})
    messages = (Message(Role.USER, (Text("u"),), vendor), Message(Role.ASSISTANT, (call("a"),), vendor))
    assert pair_history(messages)[:2] == messages


def test_an_empty_history_stays_empty() -> None:
    assert pair_history([]) == ()
    assert pair_history([assistant(), tool()]) == (assistant(), tool())


# Properties


class _Counter:
    """Makes texts that come once, so that each can be looked for."""

    def __init__(self) -> None:
        self._count = 0

    def text(self) -> str:
        self._count += 1
        return f"<{self._count}>"


IDS = st.sampled_from(["", "a", "b", "call_0", "x y"])
NAMES = st.sampled_from(["f", "g"])
ROLES = st.sampled_from(["user", "said", "called", "tool"])


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Mix anything: ids that come twice, results in any place, of any call or of none."""
    words, history = _Counter(), History()
    for role in draw(st.lists(ROLES, max_size=10)):
        if role == "user":
            history.append(user(words.text()))
        elif role == "said":
            history.append(assistant(Text(words.text())))
        elif role == "called":
            calls = [call(draw(IDS), draw(NAMES)) for _ in range(draw(st.integers(1, 3)))]
            history.append(assistant(Text(words.text()), *calls))
        else:
            results = [result(draw(IDS), words.text(), draw(NAMES)) for _ in range(draw(st.integers(1, 3)))]
            history.append(tool(*results))
    return history


@st.composite
def rounds(draw: st.DrawFn) -> History:
    """Send what clients do: in each round text, calls, some of their results in any order, some of none, the user."""
    words, history = _Counter(), History()
    ids = draw(st.sampled_from([st.just(""), st.sampled_from(["a", "b", "call_0", "x y"])]))
    for number in range(draw(st.integers(0, 5))):
        calls = [call(id, draw(NAMES)) for id in draw(st.lists(ids, max_size=3))]
        said = [assistant(Text(words.text()), *calls)]
        said += [assistant(Text(words.text())) for _ in range(draw(st.integers(0, 1)))]
        results = [result(one.id, words.text(), one.name) for one in calls if draw(st.booleans())]
        orphans = [result(f"orphan {number}", words.text()) for one in calls[:1] if one.id and draw(st.booleans())]
        answered = [tool(one) for one in draw(st.permutations([*results, *orphans]))]
        history += said + answered + [user(words.text())] * draw(st.booleans())
    return history


def all_words(messages: History | tuple[Message, ...]) -> str:
    return "".join(word for message in messages for part in message.parts for word in words_of(part))


@given(histories() | rounds())
def test_each_call_is_answered_once_right_behind_it(history: History) -> None:
    messages = pair_history(history)
    before: list[str] = []
    for message in messages:
        results = [part.call_id for part in message.parts if isinstance(part, Result)]
        assert results == before
        assert all(isinstance(part, Result) for part in message.parts) or not results
        before = [part.id for part in message.parts if isinstance(part, Call)]
    assert before == []


@given(histories() | rounds())
def test_each_call_of_a_history_has_an_id_of_its_own(history: History) -> None:
    for messages in (link_history(history), pair_history(history)):
        ids = [part.id for message in messages for part in message.parts if isinstance(part, Call)]
        assert all(ids)
        assert len(set(ids)) == len(ids)


@given(histories() | rounds())
def test_calls_stay_in_their_order_with_their_names(history: History) -> None:
    before = [part.name for message in history for part in message.parts if isinstance(part, Call)]
    assert [
        part.name for message in pair_history(history) for part in message.parts if isinstance(part, Call)
    ] == before


@given(histories() | rounds())
def test_no_word_is_lost_and_none_comes_twice_p1(history: History) -> None:
    after = all_words(pair_history(history))
    for word in filter(None, all_words(history).replace(">", ">\n").splitlines()):
        assert after.count(word) == 1


@given(rounds())
def test_a_history_in_order_stays_as_it_is(history: History) -> None:
    once = pair_history(history)
    assert pair_history(once) == once


@given(rounds())
def test_of_several_messages_with_calls_none_follow_each_other(history: History) -> None:
    for is_assistant, group in groupby(pair_history(history), lambda message: message.role is Role.ASSISTANT):
        run = list(group)
        calls = [part for message in run for part in message.parts if isinstance(part, Call)]
        assert not is_assistant or not calls or len(run) == 1


# Time


def answered_rounds(size: int) -> History:
    return [m for n in range(size // 2) for m in (assistant(call(f"c{n}")), tool(result(f"c{n}")))]


def rounds_of_one_id(size: int) -> History:
    return [m for _ in range(size // 2) for m in (assistant(call("a")), tool(result("a")))]


def half_answered_rounds(size: int) -> History:
    return [m for n in range(size // 2) for m in (assistant(call(f"c{n}"), call(f"d{n}")), tool(result(f"d{n}")))]


def one_long_run_backwards(size: int) -> History:
    calls = [assistant(call(f"c{n}")) for n in range(size // 2)]
    return calls + [tool(result(f"c{n}")) for n in reversed(range(size // 2))]


def one_long_run_without_ids(size: int) -> History:
    return [assistant(call("")) for _ in range(size // 2)] + [tool(result("")) for _ in range(size // 2)]


def one_long_run_with_results_of_no_call(size: int) -> History:
    return [assistant(call(f"c{n}")) for n in range(size // 2)] + [tool(result(f"z{n}")) for n in range(size // 2)]


@pytest.mark.parametrize(
    "make",
    [
        answered_rounds,
        rounds_of_one_id,
        half_answered_rounds,
        one_long_run_backwards,
        one_long_run_without_ids,
        one_long_run_with_results_of_no_call,
    ],
)
def test_twice_the_messages_cost_about_twice_the_time_p8(make: Callable[[int], History]) -> None:
    assert growth(pair_history, make(10_000), make(20_000)) < BAR


# ---------------------------------------------------------------- instructions after the user's words


def system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))


@pytest.mark.parametrize("wire", ["openai_chat", "ollama"])
def test_instructions_after_the_users_words_are_sent_before_them_wire9(wire: str) -> None:
    messages = (system("Be brief."), user("Create a file."), system("# Environment"))
    sent = json.loads(load(wire).encode_request(Request("m", messages), QUIRKS).body)["messages"]
    assert [each["role"] for each in sent] == ["system", "system", "user"]
    later = (*messages, assistant(call("a")), tool(result("a")), user("Go on."), system("Be quick."))
    again = json.loads(load(wire).encode_request(Request("m", later), QUIRKS).body)["messages"]
    assert again[:3] == sent, "the prefix stays the same, and with it the prompt cache"
    assert [each["role"] for each in again[3:]] == ["assistant", "tool", "system", "user"]


@pytest.mark.parametrize("wire", ["openai_chat", "ollama"])
def test_within_one_protocol_the_clients_order_is_kept_wire9(wire: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief."}]}
    path = {"openai_chat": "/v1/chat/completions", "ollama": "/api/chat"}[wire]
    request = load(wire).decode_request(json.dumps(body).encode(), path)
    sent = json.loads(load(wire).encode_request(request, QUIRKS).body)["messages"]
    assert [each["role"] for each in sent] == ["user", "system"]


@given(st.lists(st.sampled_from([system("s"), user("u"), assistant(Text("a")), tool(result("x"))])))
def test_no_message_is_lost_and_only_instructions_move_wire9(messages: History) -> None:
    ordered = instructions_first(messages)
    assert sorted(map(repr, ordered)) == sorted(map(repr, messages))
    assert [m for m in ordered if m.role is not Role.SYSTEM] == [m for m in messages if m.role is not Role.SYSTEM]

"""A conversation with `toolspeak chat`, key by key in a terminal of its own (RUN-8)."""

import json
from pathlib import Path

import pytest

from testkit.scripted_model import Refuses, Scripted, called, text, thought
from testkit.terminal import CTRL_C, CTRL_D, Terminal, terminal

OSLO = ("get_weather", '{"city": "Oslo", "days": 3}')


@pytest.fixture
def tools(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(["get_weather"]))
    return str(file)


def end(screen: Terminal) -> None:
    """Wait for the prompt, for a key that nobody waits for may be lost, and leave."""
    screen.expect("› ")
    screen.press(CTRL_D)
    assert screen.status() == 0


def test_a_conversation_goes_on_until_ctrl_d(upstream: Scripted) -> None:
    upstream.says(thought("A greeting.", "Hello."), text("Still here."))
    with terminal("chat", "--upstream", upstream.url) as screen:
        screen.expect("Ctrl-D exits")
        screen.expect("› ")
        screen.press("Hi\n")
        screen.expect("Hello.")
        screen.expect("› ")
        screen.press("\n   \nAnd now?\n")
        screen.expect("Still here.")
        screen.expect("tokens")
        screen.expect("› ")
        screen.press("\x1b[A")  # up: the history
        screen.expect("And now?")
        screen.press("\x15" + CTRL_D)
        assert screen.status() == 0
    assert screen.plain.splitlines()[0] == f"tiny on {upstream.url[7:-3]} · /help explains · Ctrl-D exits"
    assert "\x1b[2mA greeting.\x1b[0m" in screen.shown
    assert [one["content"] for one in upstream.bodies[1]["messages"]] == ["Hi", "Hello.", "And now?"]


def test_the_person_says_what_the_tool_returns(upstream: Scripted, tools: str) -> None:
    upstream.says(called(OSLO, OSLO), text("It is cold."))
    with terminal("chat", "--upstream", upstream.url, "--tools", tools) as screen:
        screen.expect("1 tool")
        screen.expect("› ")
        screen.press("Is it cold?\n")
        screen.expect("result of get_weather, 1 of 2 ›")
        screen.press("-3 °C\n")
        screen.expect("result of get_weather, 2 of 2 ›")
        screen.press("\n")
        screen.expect("It is cold.")
        end(screen)
    asked, answer, first, second = upstream.bodies[1]["messages"]
    assert (asked["role"], answer["role"]) == ("user", "assistant")
    assert (first["role"], first["content"], first["tool_call_id"]) == ("tool", "-3 °C", "call_0")
    assert (second["role"], second["content"], second["tool_call_id"]) == ("tool", "cancelled", "call_1")


def test_ctrl_c_instead_of_a_result_gives_the_word_back(upstream: Scripted, tools: str) -> None:
    upstream.says(called(OSLO, OSLO), text("As you like."))
    with terminal("chat", "--upstream", upstream.url, "--tools", tools) as screen:
        screen.expect("› ")
        screen.press("Is it cold?\n")
        screen.expect("1 of 2 ›")
        screen.press(CTRL_C)
        screen.expect("› ")
        screen.press("Never mind.\n")
        screen.expect("As you like.")
        end(screen)
    roles = [(one["role"], one.get("content")) for one in upstream.bodies[1]["messages"][2:]]
    assert roles == [("tool", "cancelled"), ("tool", "cancelled"), ("user", "Never mind.")]


def test_ctrl_c_stops_an_answer_and_the_conversation_goes_on(upstream: Scripted) -> None:
    upstream.says(text("Once upon", hangs=True), text(hangs=True), text("Bye."))
    with terminal("chat", "--upstream", upstream.url) as screen:
        screen.expect("› ")
        screen.press("Tell a story.\n")
        screen.expect("Once upon")
        screen.press(CTRL_C)
        screen.expect("› ")
        assert upstream.gone.wait(10), "the upstream is told"
        upstream.gone.clear()
        screen.press("Hello?\n")
        upstream.wait_for(2)
        screen.press(CTRL_C)
        screen.expect("› ")
        screen.press(CTRL_C)
        screen.expect("Ctrl-D exits")
        screen.press("Bye!\n")
        screen.expect("Bye.")
        end(screen)
    assert "Traceback" not in screen.shown
    assert [one["content"] for one in upstream.bodies[-1]["messages"]] == ["Tell a story.", "Once upon", "Bye!"]


def test_a_failure_leaves_the_conversation_as_it_was(upstream: Scripted) -> None:
    upstream.says(text("Hello."), Refuses(401, "no key \x1b[2J"), text("Again."))
    with terminal("chat", "--upstream", upstream.url) as screen:
        for said, shown in (("One", "Hello."), ("Two", "toolspeak: "), ("Three", "Again.")):
            screen.expect("› ")
            screen.press(f"{said}\n")
            screen.expect(shown)
        end(screen)
    assert "no key \\x1b[2J" in screen.shown
    assert [one["content"] for one in upstream.bodies[2]["messages"]] == ["One", "Hello.", "Three"]


def test_without_colour_a_conversation_has_no_escapes_of_ours(upstream: Scripted, tools: str) -> None:
    upstream.says(thought("Hm.", "Hello."))
    args = ("chat", "--upstream", upstream.url, "--tools", tools, "--color", "never")
    with terminal(*args, env={"TERM": "dumb"}) as screen:
        screen.expect("› ")
        screen.press("Hi\n")
        screen.expect("[reasoning] Hm.")
        screen.expect("Hello.")
        end(screen)
    assert "\x1b" not in screen.shown


def test_a_conversation_is_no_json(upstream: Scripted) -> None:
    with terminal("chat", "--upstream", upstream.url, "--json") as screen:
        assert screen.status() == 2
    assert "toolspeak: --json needs a PROMPT." in screen.shown


def test_ctrl_c_ends_one_question_quietly(upstream: Scripted) -> None:
    upstream.says(text("Once upon", hangs=True))
    with terminal("chat", "--upstream", upstream.url, "Tell a story.") as screen:
        screen.expect("Once upon")
        screen.press(CTRL_C)
        assert screen.status() == 130
    assert upstream.gone.wait(10)
    assert "Traceback" not in screen.shown

"""`toolspeak chat --tools`, key by key in a terminal of its own: the tools run, with approval (RUN-19)."""

import io
from pathlib import Path

import pytest

from testkit.scripted_model import Refuses, Scripted, called, text
from testkit.terminal import CTRL_C, CTRL_D, Terminal, terminal
from toolspeak.cli import main

READ = ("read_file", '{"path": "a.txt"}')
WRITE = ("write_file", '{"path": "b.txt", "content": "bread"}')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "here"
    made.mkdir()
    (made / "a.txt").write_text("apples\n")
    return made


@pytest.fixture
def args(upstream: Scripted, folder: Path) -> tuple[str, ...]:
    return ("chat", "--upstream", upstream.url, "--folder", str(folder), "--tools", "files")


def ask(screen: Terminal, line: str) -> None:
    """Wait for the prompt, for a key that nothing waits for may be lost, and type a line."""
    screen.expect("› ")
    screen.press(f"{line}\n")


def leave(screen: Terminal) -> None:
    screen.expect("› ")
    screen.press(CTRL_D)
    assert screen.status() == 0
    assert "Traceback" not in screen.shown


def contents(upstream: Scripted, request: int) -> list[str]:
    return [each["content"] for each in upstream.bodies[request]["messages"] if each["role"] != "system"]


def test_each_line_continues_the_conversation_run19(upstream: Scripted, args: tuple[str, ...]) -> None:
    upstream.says(called(READ), text("It has apples."), text("Still apples."))
    with terminal(*args) as screen:
        screen.expect("tools files · approval ask · /show N expands a round · /help explains · Ctrl-D exits")
        ask(screen, "What is in a.txt?")
        screen.expect('✓ 1 read_file(path="a.txt")')
        screen.expect("It has apples.")
        ask(screen, "And now?")
        screen.expect("Still apples.")
        leave(screen)
    said = contents(upstream, 2)
    assert (said[0], said[-2:]) == ("What is in a.txt?", ["It has apples.", "And now?"])
    assert any(each and "apples" in each for each in said[1:-2]), "the result of the call is in the conversation"


def test_a_round_is_one_line_until_it_is_shown_run19(upstream: Scripted, args: tuple[str, ...]) -> None:
    upstream.says(called(READ), text("Yes."), called(READ), text("Yes again."))
    with terminal(*args) as screen:
        ask(screen, "/show")
        screen.expect("there are no rounds so far")
        ask(screen, "Look at a.txt.")
        screen.expect("Yes.")
        ask(screen, "Look at a.txt again.")
        screen.expect("✓ 2 read_file")
        screen.expect("Yes again.")
        assert '"path": "a.txt"' not in screen.plain
        ask(screen, "/show 2")
        screen.expect("✓ 2 read_file")
        screen.expect('"path": "a.txt"')
        screen.expect("apples")
        ask(screen, "/show 3")
        screen.expect("there are 2 rounds so far")
        leave(screen)
    assert len(upstream.bodies) == 4, "the model is not asked about /show"


def test_a_call_that_changes_something_waits_for_a_yes_run5_run19(
    upstream: Scripted, args: tuple[str, ...], folder: Path
) -> None:
    upstream.says(called(WRITE), text("First."), called(WRITE), text("Second."))
    with terminal(*args) as screen:
        ask(screen, "Write b.txt.")
        screen.expect("a always write_file")
        assert not (folder / "b.txt").exists()
        screen.press("a\n")
        screen.expect("First.")
        assert (folder / "b.txt").read_text() == "bread"
        ask(screen, "Write b.txt once more.")
        screen.expect("Second.")
        leave(screen)
    assert screen.plain.count("allow it?") == 1, "always lasts as long as the conversation"


def test_ctrl_c_at_the_question_keeps_the_conversation_and_the_next_line_run19(
    upstream: Scripted, args: tuple[str, ...], folder: Path
) -> None:
    """A thread that still waits for the answer would take the next line."""
    upstream.says(called(READ), called(WRITE), text("All right."))
    with terminal(*args) as screen:
        ask(screen, "Copy a.txt.")
        screen.expect("allow it?")
        screen.press(CTRL_C)
        screen.expect("cancelled")
        ask(screen, "Never mind.")
        screen.expect("All right.")
        leave(screen)
    assert not (folder / "b.txt").exists()
    said = contents(upstream, 2)
    assert (said[0], said[-1]) == ("Copy a.txt.", "Never mind.")
    assert any(each and "apples" in each for each in said[1:-1]), "the finished round is kept"


def test_a_failure_leaves_the_conversation_as_it_was_run19(upstream: Scripted, args: tuple[str, ...]) -> None:
    upstream.says(text("Hello."), Refuses(401, '{"error": {"message": "no such key"}}'), text("Here."))
    with terminal(*args) as screen:
        ask(screen, "Hi.")
        screen.expect("Hello.")
        ask(screen, "Are you there?")
        screen.expect("failed: ")
        ask(screen, "And now?")
        screen.expect("Here.")
        leave(screen)
    assert contents(upstream, -1) == ["Hi.", "Hello.", "And now?"]


def test_with_a_prompt_the_tools_run_once_run19(
    upstream: Scripted, args: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    upstream.says(called(READ), text("It has apples."))
    with pytest.raises(SystemExit) as ended:
        main([*args, "What is in a.txt?"])
    assert (ended.value.code, capsys.readouterr().out) == (0, "It has apples.\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tools", "missing.json", "Hi"], "is neither a file that exists nor names of tools, such as files,shell"),
        (["--tools", "Fix the tests.", "-"], "With a PROMPT, write the names"),
        (["--folder", ".", "Hi"], "--folder and --approval need tools that run"),
        (["--tools", "fils", "--folder", ".", "Hi"], "'fils' is not one of files, shell, final_output"),
    ],
)
def test_what_cannot_be_meant_is_told_run19(
    upstream: Scripted,
    arguments: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Hi")))
    with pytest.raises(SystemExit) as ended:
        main(["chat", "--upstream", upstream.url, *arguments])
    assert ended.value.code
    assert says in capsys.readouterr().err
    assert not upstream.bodies

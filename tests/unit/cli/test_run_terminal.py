"""`toolspeak run`, key by key in a terminal of its own: asked, streamed, stopped (RUN-5, RUN-8)."""

import asyncio
import os
import pty
from pathlib import Path

import pytest

from testkit.scripted_model import Scripted, called, text
from testkit.terminal import CTRL_C, CTRL_D, Terminal, terminal
from toolspeak.cli.run.session import typed_line

WRITE = ("write_file", '{"path": "b.txt", "content": "Hi \\u001b[2J"}')
STUBBORN = """
import asyncio

async def stubborn() -> str:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""


@pytest.fixture
def args(upstream: Scripted, tmp_path: Path) -> tuple[str, ...]:
    folder = tmp_path / "here"
    folder.mkdir()
    return ("run", "--upstream", upstream.url, "--folder", str(folder), "--tools", "files", "Write.")


def ended(screen: Terminal) -> int:
    status = screen.status()
    assert "Traceback" not in screen.shown
    assert screen.shown.count("\x1b[?25l") == screen.shown.count("\x1b[?25h"), "the cursor is there again"
    return status


def told(upstream: Scripted, request: int) -> str:
    return upstream.bodies[request]["messages"][-1]["content"]


def test_the_call_is_shown_and_waits_for_a_yes_run5(upstream: Scripted, args: tuple[str, ...], tmp_path: Path) -> None:
    upstream.says(called(WRITE), called(WRITE), text("Done."))
    with terminal(*args) as screen:
        screen.expect("▸ write_file")
        screen.expect('"content": "Hi \\u001b[2J"')
        screen.expect("allow it?")
        screen.press("hm\n")
        screen.expect("allow it?")
        assert not (tmp_path / "here" / "b.txt").exists()
        screen.press("y\n")
        screen.expect("allow it?")
        screen.press("n it is there already\n")
        screen.expect("Done.")
        assert ended(screen) == 0
    assert (tmp_path / "here" / "b.txt").read_text() == "Hi \x1b[2J"
    assert "it is there already" in told(upstream, 2)
    assert "\x1b[2J" not in screen.shown


def test_always_asks_once_for_a_tool_run5(upstream: Scripted, args: tuple[str, ...]) -> None:
    upstream.says(called(WRITE), called(WRITE), text("Done."))
    with terminal(*args) as screen:
        screen.expect("a always write_file")
        screen.press("a\n")
        screen.expect("Done.")
        assert ended(screen) == 0
    assert screen.plain.count("allow it?") == 1


def test_what_is_typed_before_the_question_is_no_answer_run5(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who types ahead has not seen what they allow."""
    master, slave = pty.openpty()
    os.write(master, b"y\ny\n")
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)

        async def answered() -> str | None:
            line = asyncio.ensure_future(typed_line())
            await asyncio.sleep(0.2)
            assert not line.done()
            os.write(master, b"n\n")
            return await line

        assert asyncio.run(answered()) == "n\n"
    os.close(master)


@pytest.mark.parametrize("key", ["q\n", CTRL_D, CTRL_C])
def test_who_will_not_answer_stops_the_run_run5(upstream: Scripted, args: tuple[str, ...], key: str) -> None:
    upstream.says(called(WRITE), text("Done."))
    with terminal(*args) as screen:
        screen.expect("allow it?")
        screen.press(key)
        screen.expect("cancelled")
        assert ended(screen) == 130
    assert len(upstream.bodies) == 1


def test_text_is_seen_as_it_comes_and_ctrl_c_stops_it_run8(upstream: Scripted, args: tuple[str, ...]) -> None:
    upstream.says(called(("list_files", "{}")), text("Once upon", hangs=True))
    with terminal(*args) as screen:
        screen.expect("✓ list_files()")
        screen.expect("Once upon")
        screen.expect("round 2 of 50")
        screen.press(CTRL_C)
        screen.expect("stopping")
        screen.expect("cancelled: ")
        assert ended(screen) == 130
    assert upstream.gone.wait(10), "the upstream is told"


def test_ctrl_c_twice_leaves_whatever_still_runs_run8(
    upstream: Scripted, args: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "stubborn_tool.py").write_text(STUBBORN)
    upstream.says(called(("stubborn", "{}")))
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    more = ("--tools", "stubborn_tool:stubborn", "--approval", "off")
    with terminal(*args, *more, env={"PYTHONPATH": path}) as screen:
        screen.expect("stubborn()")
        screen.press(CTRL_C)
        screen.expect("stopping")
        screen.press(CTRL_C)
        assert ended(screen) == 130


def test_without_colours_nothing_is_coloured_run8(upstream: Scripted, args: tuple[str, ...]) -> None:
    upstream.says(called(("list_files", "{}")), text("Done."), text("Done."))  # asked why it wrote nothing
    with terminal(*args, env={"NO_COLOR": "1"}) as screen:
        screen.expect("Done.")
        assert ended(screen) == 0
    assert "\x1b[3" not in screen.shown
    assert "\x1b[2m" not in screen.shown

"""`toolspeak run`: a task worked on before your eyes (RUN-1, RUN-5, RUN-8)."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from testkit.scripted_model import Refuses, Says, Scripted, called, text
from toolspeak.agent.runs import provider
from toolspeak.agent.runs.events import RunEnded, RunEvent, ToolCallBegan, ToolCallEnded, TurnBegan, TurnEnded, Wrote
from toolspeak.cli import main
from toolspeak.cli.run import session
from toolspeak.cli.run.screen import PlainScreen, ShownCall, Transcript, round_lines
from toolspeak.cli.run.session import choose_screen
from toolspeak.cli.terminal import Paint, duration_text
from toolspeak.engine.agent import Status

PLAIN = Paint()
READ = ("read_file", '{"path": "a.txt"}')
WRITE = ("write_file", '{"path": "b.txt", "content": "Hi"}')
NASTY = "\x1b[2J\u202egone"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with one file, with nobody at the terminal; runs are kept in memory."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "a.txt").write_text("hello")
    monkeypatch.chdir(here)
    monkeypatch.setattr(provider, "has_extra", {"runs": False}.get)  # it would log to a stream that a test has closed
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    return here


def before(words: str, *calls: tuple[str, str]) -> Says:
    """Return a turn that says something, and then calls."""
    return Says([{"content": words}, *called(*calls).deltas], "tool_calls")


def status_of(upstream: Scripted, *args: str, tools: str = "files") -> object:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--upstream", upstream.url, "--tools", tools, *args])
    return ended.value.code


def results(upstream: Scripted, request: int) -> list[str]:
    """Return what the model was told of its calls."""
    return [each["content"] for each in upstream.bodies[request]["messages"] if each["role"] == "tool"]


# ---------------------------------------------------------------- from begin to end


def test_the_text_goes_to_stdout_and_the_rounds_to_stderr_run8(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    upstream.says(before("I look.", READ, ("list_files", "{}")), text("It says ", "hello.\n"))
    assert status_of(upstream, "What is there?") == 0
    captured = capsys.readouterr()
    assert captured.out == "It says hello.\n"
    head, said, round_, end = captured.err.splitlines()
    assert head.endswith(f"· {folder} · approval read-only")
    assert said == "I look."
    assert round_.startswith('✓ read_file(path="a.txt"), list_files()  0.')
    assert end.startswith("done · 1 round · ")
    assert results(upstream, 1) == ["hello", "a.txt  5 bytes"]


def test_the_model_writes_as_it_is_told_run8(upstream: Scripted) -> None:
    upstream.says(called(READ), text("Well."))
    assert status_of(upstream, "--max-tokens", "64", "--temperature", "0", "What is there?") == 0
    assert [(body["max_tokens"], body["temperature"]) for body in upstream.bodies] == [(64, 0.0)] * 2


def test_opened_it_shows_arguments_and_results_run8(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(called(READ, ("read_file", '{"path": "no.txt"}')), text("Well."))
    assert status_of(upstream, "Read.", "--expand") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith('✓ read_file(path="a.txt")')
    assert lines[2:4] == ['    {"path": "a.txt"}', "    hello"]
    assert lines[4].startswith('✗ read_file(path="no.txt")')


def test_what_nobody_can_be_asked_about_is_not_done_run5(upstream: Scripted, folder: Path) -> None:
    """Without a terminal the mode is read-only; who says ask then is told that nobody is there."""
    upstream.says(called(WRITE), text("I may not."), called(WRITE), text("Nobody."))
    assert status_of(upstream, "Write.") == 0
    assert "read-only" in results(upstream, 1)[0]
    assert status_of(upstream, "Write.", "--approval", "ask") == 0
    assert "there is no terminal to ask on" in results(upstream, 3)[0]
    assert not (folder / "b.txt").exists()


def test_auto_writes_in_the_folder_without_a_word_run5(upstream: Scripted, folder: Path) -> None:
    upstream.says(called(WRITE), text("Done."))
    assert status_of(upstream, "Write.", "--approval", "auto") == 0
    assert (folder / "b.txt").read_text() == "Hi"


def test_the_closing_object(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(before("I look.", READ), text("It says hello."))
    assert status_of(upstream, "Read.", "--json") == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["status"], said["text"], said["rounds"], said["model"]) == ("done", "It says hello.", 1, "tiny")
    assert said["message"]["rounds"][0]["results"][0]["content"][0]["text"] == "hello"
    assert said["ended"] >= said["began"]


def test_events_as_lines_of_json(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(called(READ), text(f"It says {NASTY}."))
    assert status_of(upstream, "Read.", "--events") == 0
    captured = capsys.readouterr()
    events: list[dict[str, Any]] = [json.loads(line) for line in captured.out.splitlines()]
    assert [each["number"] for each in events] == list(range(len(events)))
    assert [each["kind"] for each in events if each["kind"] != "wrote"] == [
        *("turn_began", "turn_ended", "call_began", "call_ended"),
        *("turn_began", "turn_ended", "run_ended"),
    ]
    assert captured.out.isascii()
    assert captured.err == ""


def test_a_model_cannot_steer_the_terminal(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(before(f"I {NASTY}", (f"read{NASTY}", json.dumps({"path": NASTY}))), text(f"It says {NASTY}."))
    assert status_of(upstream, "Read.", "--expand", "--mode", "off") == 0
    captured = capsys.readouterr()
    assert captured.out == "It says \\x1b[2J\\u202egone.\n"
    assert "\x1b" not in captured.err
    assert "\u202e" not in captured.err


# ---------------------------------------------------------------- other ends


def test_used_up_rounds_are_status_1(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(called(READ), text("I have read one file."))
    assert status_of(upstream, "Read all.", "--rounds", "1") == 1
    captured = capsys.readouterr()
    assert captured.out == "I have read one file.\n"
    assert "summed up: its 1 rounds were used up" in captured.err


def test_a_model_that_fails_is_status_1(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(called(READ), Refuses(400, "no more tokens"))
    assert status_of(upstream, "Read.") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "failed: " in captured.err
    assert "no more tokens" in captured.err
    assert "runs" in captured.err.splitlines()[-1], "it says how to go on, or why not"


def test_a_call_that_is_rejected_is_shown_with_its_arguments_and_the_reason_run8(
    upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user sees what the model wrote, not only that nothing happened."""
    wrong = called(("get_weather", '{"city": "Oslo"}'))
    upstream.says(*[wrong] * 4, *[text("I cannot say.")] * 4)
    status_of(upstream, "Is it cold?")
    lines = capsys.readouterr().err.splitlines()
    at = lines.index('✗ get_weather(city="Oslo")')
    assert lines[at + 1].startswith("    there is no such tool: available tools: ")


def test_a_tool_that_there_is_not(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(upstream, "Dig.", tools="files,spade") == 1
    assert "'spade'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--json", "--events", "Go."], "--json and --events cannot be used together"),
        ([""], "prompt is empty"),
        (["--rounds", "0", "Go."], "--rounds"),
        (["--folder", "missing", "Go."], "--folder"),
        (["--approval", "maybe", "Go."], "--approval"),
    ],
)
def test_what_is_said_wrong_is_status_2(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], args: Sequence[str], problem: str
) -> None:
    assert status_of(upstream, *args) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("where", ["home", "root"])
def test_a_home_is_no_folder_unless_it_is_named_run5(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, where: str
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir({"home": folder, "root": "/"}[where])
    assert status_of(upstream, "Tidy up.") == 2
    assert "Pass --folder" in capsys.readouterr().err
    assert upstream.bodies == []
    upstream.says(text("Tidy."))
    assert status_of(upstream, "Tidy up.", "--folder", str(folder)) == 0


def test_the_task_may_be_piped_and_the_settings_reach_the_model(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Sum up."), encoding="utf-8"))
    upstream.says(text("Short."))
    assert status_of(upstream, "-", "--model", "large", "--mode", "force", "--system", "Be brief.") == 0
    body = upstream.bodies[0]
    assert (body["model"], "tools" in body) == ("large", False)
    assert "Be brief." in body["messages"][0]["content"]
    assert "Sum up." in body["messages"][-1]["content"]


# ---------------------------------------------------------------- the transcript and its screens


def told(*events: RunEvent, paint: Paint = PLAIN, expand: bool = False) -> list[str]:
    transcript = Transcript(paint, expand=expand)
    return [line for event in events for line in transcript.feed(event)]


def test_a_turn_that_was_lost_with_its_worker_does_not_count_run8() -> None:
    transcript = Transcript(PLAIN, expand=False)
    for event in (TurnBegan(0), Wrote(0, "Lost "), TurnBegan(0), Wrote(0, "Found")):
        assert list(transcript.feed(event)) == []
    assert (transcript.writing, transcript.doing) == ("Found", "writing")


def test_thoughts_and_words_are_not_mixed_run8() -> None:
    transcript = Transcript(PLAIN, expand=False)
    for event in (TurnBegan(0), Wrote(0, "Hm.", thought=True)):
        list(transcript.feed(event))
    assert (transcript.writing, transcript.doing, transcript.is_reasoning) == ("Hm.", "thinking", True)
    list(transcript.feed(Wrote(0, "Yes")))
    assert (transcript.writing, transcript.is_reasoning) == ("Yes", False)


def test_a_round_is_one_line_when_its_last_call_has_ended_run8() -> None:
    first, second = ToolCallBegan(0, "a", "look", "{}"), ToolCallBegan(0, "b", "dig", '{"deep": 3}')
    ends = (
        ToolCallEnded(0, "a", "look", "a stone", is_error=False, seconds=1.0),
        ToolCallEnded(0, "b", "dig", "no", True, 0.5),
    )
    assert told(TurnEnded(0, "", 2, 0.1), first, ends[0], second) == []
    assert told(TurnEnded(0, "", 2, 0.1), first, ends[0], second, ends[1]) == ["✗ look(), dig(deep=3)  1.5 s"]


def test_a_round_that_was_broken_off_shows_what_ran_run8() -> None:
    began = ToolCallBegan(0, "a", "look", "{}")
    assert told(TurnEnded(0, "", 1, 0.1), began, RunEnded(0, Status.CANCELLED, "")) == ["✓ look()"]


def test_a_long_round_fits_on_its_line() -> None:
    did = ShownCall("write_file", json.dumps({"content": "x" * 100_000}), "ok", seconds=75.4)
    for width in (0, 20, 80):
        (line,) = round_lines([did], Paint(width=width), expand=False)
        assert len(line) <= (width or 100)
        assert line.endswith("…  1 min 15 s")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (60, "1 min 0 s"), (3599.6, "60 min 0 s")]
)
def test_times_as_people_say_them(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words


class _Terminal(io.StringIO):
    @override
    def isatty(self) -> bool:
        return True


def test_without_rich_a_terminal_gets_the_lines_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", _Terminal())
    monkeypatch.setattr(session, "find_spec", {"rich": None}.get)
    assert isinstance(choose_screen(Transcript(PLAIN, expand=False), PLAIN, 5), PlainScreen)


def test_a_dumb_terminal_gets_the_lines_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", _Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_screen(Transcript(PLAIN, expand=False), PLAIN, 5), PlainScreen)

"""The command line as people meet it: help at once, errors in one line, an end without noise."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from toolspeak.cli import COMMANDS, main, toolspeak

BAR = 2.5
"""How many times the start of Python with click, which every command needs, help may cost. It is 1.5; the packages of
`HEAVY` would make it more than 3."""
TRIES = 8
HEAVY = ("aiohttp", "asyncio", "jiter", "jsonschema_rs", "msgspec", "uvicorn", "toolspeak.dialects", "toolspeak.wires")


def run(*args: str, text: str = "", python: tuple[str, ...] = ("-m", "toolspeak")) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python, *args]
    return subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=False)


def cpu_s(*args: str, python: tuple[str, ...] = ("-m", "toolspeak")) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run(*args, python=python).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return ended.value.code


@pytest.mark.parametrize("args", [("--help",), ("--version",), *((name, "--help") for name in COMMANDS)])
def test_help_comes_at_once(args: tuple[str, ...]) -> None:
    """Other work on the machine only ever adds time: the best of some tries counts, taken in turns."""
    bare = best = float("inf")
    for _ in range(TRIES):
        bare = min(bare, cpu_s(python=("-c", "import click")))
        best = min(best, cpu_s(*args))
        if best < BAR * bare:
            break
    assert best < BAR * bare


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys\nfrom toolspeak.cli import main\n"
        f"try: main({args})\nexcept SystemExit: print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert run(python=("-c", code)).stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_line_of_the_table_and_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = toolspeak.get_command(click.Context(toolspeak), name)
    assert command is not None
    assert (command.help or "").splitlines()[0] == COMMANDS[name]
    assert status_of(name, "--help") == 0
    shown = capsys.readouterr().out
    assert "Example" in shown
    assert f"\n    toolspeak {name}" in shown, "an example on a line of its own"
    assert "\\b" not in shown
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--help") == 0
    shown = capsys.readouterr().out
    assert all(line in shown for line in COMMANDS.values())


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)


def test_no_help_page_shows_the_mark_that_keeps_its_lines() -> None:
    assert isinstance(toolspeak, click.Group)
    found = dict(commands(toolspeak))
    assert ("keys", "make") in found
    marked = [command for command in found.values() if "\b" in (command.help or "")]
    assert len(marked) > len(COMMANDS) / 2
    for path, command in found.items():
        page = command.get_help(click.Context(command, info_name=" ".join(path)))
        assert "\\b" not in page, path
        assert "\b" not in page, path


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--version") == 0
    name, version = capsys.readouterr().out.split()
    assert name == "toolspeak"
    assert version[0].isdigit()


def test_no_command_shows_the_help_and_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of() == 2
    assert COMMANDS["explain"] in capsys.readouterr().err


def test_an_unknown_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("expain") == 2
    first, hint = capsys.readouterr().err.splitlines()
    assert first.startswith("toolspeak: ")
    assert "'expain'" in first
    assert "'explain'" in first
    assert hint == "Try 'toolspeak --help'."


def test_a_wrong_option_names_the_command_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("explain", "--chunk", "0") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("toolspeak: Invalid value for '--chunk': 0")
    assert captured.err.endswith("Try 'toolspeak explain --help'.\n")


def test_an_error_of_ours_is_one_line_without_a_traceback() -> None:
    ended = run("explain", "--dialect", "klingon")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("toolspeak: dialect 'klingon' is not one of any, ")
    assert ended.stderr.count("\n") == 1


def test_an_error_cannot_write_to_the_terminal_what_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("\x1b[2J\u202e") == 2
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "\\x1b[2J\\u202e" in shown


def test_ctrl_c_ends_quietly() -> None:
    ended = run("explain", python=("-c", INTERRUPTED))
    assert ended.returncode == 130
    assert ended.stdout == ""
    assert ended.stderr.strip() == ""


INTERRUPTED = """
import io, os, signal, sys, time

class Waiting(io.BytesIO):
    def read(self, size=-1):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)

sys.stdin = io.TextIOWrapper(Waiting())
from toolspeak.cli import main
main()
"""


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("word\n" * 20_000)
    command = [sys.executable, "-m", "toolspeak", "explain", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) in (0, 1)  # 0 where the system took all of it before it told us


def test_the_module_and_the_entry_point_are_one_command() -> None:
    assert run("--help").stdout == run("--help", python=("-c", "from toolspeak.cli import main; main()")).stdout


def test_a_terminal_that_lacks_a_character_shows_its_escape() -> None:
    ended = run("explain", text="日本", python=("-c", LATIN))
    assert ended.returncode == 0
    assert "\\u65e5\\u672c" in ended.stdout


LATIN = """
import sys
sys.stdout.reconfigure(encoding="latin-1")
from toolspeak.cli import main
main()
"""

"""Every error of the command line is in error_messages.txt, which a person can read from top to bottom."""

import pytest

from testkit.error_messages import FILE, Case, headings, read_cases, rewritten, run_case
from toolspeak.cli import COMMANDS

TEXT = FILE.read_text(encoding="utf-8")
CASES = read_cases(TEXT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.line)
def test_a_message_is_as_the_file_says(case: Case) -> None:
    """If it is meant to change, run `just error-messages` and read what changed."""
    assert run_case(case.line) == case.said


def test_there_are_enough_of_them_and_each_command_has_some() -> None:
    assert len(CASES) >= 60
    assert list(headings(TEXT)) == ["toolspeak", *COMMANDS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.line)
def test_a_message_is_no_traceback_and_no_success(case: Case) -> None:
    assert "Traceback" not in case.said
    assert case.said.splitlines()[-1] in ("exit 1", "exit 2")
    assert len(case.said.splitlines()) > 1, "an error that says nothing"


def test_a_new_case_is_one_line() -> None:
    """The line is enough: the recipe adds what it prints, and leaves the text around it alone."""
    written = rewritten("# Title\n\nSome words.\n\n## config\n\n$ toolspeak config scheme\n$ toolspeak bogus\n")
    first, second = read_cases(written)
    assert (
        first.said
        == "toolspeak: No such command 'scheme'. Did you mean 'schema'?\nTry 'toolspeak config --help'.\nexit 2"
    )
    assert second.line == "toolspeak bogus"
    assert written.startswith("# Title\n\nSome words.\n\n## config\n\n$ toolspeak config scheme\n")
    assert rewritten(written) == written

"""What is shown is safe, and coloured only where people can see it."""

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.cli.terminal import Paint, color_option, visible, wrap_columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, näïve, 東京\u3000駅 🙂\n\tnext", "plain, näïve, 東京\u3000駅 🙂\n\tnext"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb\x00\x07\x7f", "a\\rb\\x00\\x07\\x7f"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\u200b\ufeff\u2028", "\\u200b\\ufeff\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_cannot_be_seen_is_written_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_that_moves_the_cursor_gets_through(text: str) -> None:
    assert all(char.isprintable() or char in "\n\t\u3000" for char in visible(text))


@given(st.text(st.characters(exclude_categories=("C", "Z"))), st.integers(4, 40))
def test_wrapping_only_cuts(line: str, width: int) -> None:
    pieces = list(wrap_columns(line, width))
    assert "".join(pieces) == line
    assert all(pieces) or pieces == [""]
    assert all(len(piece) <= width for piece in pieces if piece.isascii())


def test_wide_characters_take_two_cells() -> None:
    assert list(wrap_columns("東京の駅ab", 6)) == ["東京の", "駅ab"]
    assert list(wrap_columns("e\u0301" * 4, 4)) == ["e\u0301" * 4]


@click.command()
@color_option
def painted() -> None:
    click.echo(Paint.here().ink("leaf", "green"))


@pytest.mark.parametrize(
    ("args", "environment", "colored"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        ([], {"NO_COLOR": ""}, False),
    ],
)
def test_colour_is_where_it_is_wanted(args: list[str], environment: dict[str, str], colored: bool) -> None:
    result = CliRunner().invoke(painted, args, env=environment)
    assert result.output == ("\x1b[32mleaf\x1b[0m\n" if colored else "leaf\n")


@pytest.mark.parametrize(("value", "decided"), [("", None), ("1", False), ("0", False), ("please", False)])
def test_no_color_means_no_whatever_it_is_set_to(value: str, decided: bool | None) -> None:
    """On a terminal `None` would be colour."""
    with CliRunner().isolation(env={"NO_COLOR": value}), painted.make_context("painted", []) as ctx:
        assert ctx.color is decided

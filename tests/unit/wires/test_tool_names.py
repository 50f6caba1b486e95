"""Names of tools: the wire's rules kept, and the client's own name back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.wires.shared.tools import ToolNames

LEGAL = {False: re.compile("[A-Za-z0-9_-]+"), True: re.compile("[A-Za-z_][A-Za-z0-9_-]*")}
"""By whether the wire wants a letter first."""
all_names = st.text() | st.text("aé.:_-/", min_size=50, max_size=300) | st.text("azAZ09_-", max_size=70)


@given(all_names, st.sampled_from([64, 128, 512]), st.booleans())
def test_every_name_comes_back_as_it_was(name: str, longest: int, letter_first: bool) -> None:
    names = ToolNames([], longest, letter_first=letter_first)
    assert names.back(names.out(name)) == name
    assert ToolNames([name], longest, letter_first=letter_first).back(names.out(name)) == name


@given(all_names, st.sampled_from([64, 128]), st.booleans())
def test_every_name_that_goes_out_is_legal(name: str, longest: int, letter_first: bool) -> None:
    out = ToolNames([], longest, letter_first=letter_first).out(name)
    assert LEGAL[letter_first].fullmatch(out)
    assert len(out) <= longest


@given(st.lists(all_names, unique=True))
def test_different_names_stay_different_and_all_are_known(some: list[str]) -> None:
    names = ToolNames(some, 64)
    assert len(names.known) == len(some)
    assert names.known == {names.out(name) for name in some}
    assert [names.back(names.out(name)) for name in some] == some


@given(all_names, all_names)
def test_an_alias_depends_on_the_name_alone(name: str, other: str) -> None:
    assert ToolNames([other, name], 64).out(name) == ToolNames([], 64).out(name)


@pytest.mark.parametrize("name", ["f", "get_weather", "mcp__files__read-all", "0", "x" * 64])
def test_a_legal_name_stays(name: str) -> None:
    assert ToolNames([name], 64).out(name) == name


@pytest.mark.parametrize("name", ["", "a.b", "mcp:files/read", "é", "a b", "a\n", "名前"])
def test_an_illegal_name_gets_an_alias(name: str) -> None:
    assert ToolNames([name], 64).out(name) != name


@pytest.mark.parametrize("name", ["0", "-f", "9lives"])
def test_a_name_without_a_letter_first_gets_an_alias_where_the_wire_wants_one(name: str) -> None:
    assert ToolNames([], 64, letter_first=True).out(name).startswith(f"_{name}_")
    assert ToolNames([], 64).out(name) == name


def test_an_alias_can_be_recognised_and_is_the_same_in_every_process() -> None:
    assert ToolNames([], 64).out("mcp.files:read") == "mcp_files_read_a27e71c9"


@pytest.mark.parametrize(("size", "kept"), [(63, True), (64, True), (65, False), (300, False)])
def test_a_name_is_shortened_over_the_longest_that_the_wire_allows_p7(size: int, kept: bool) -> None:
    names = ToolNames(["x" * size], 64)
    out = names.out("x" * size)
    assert (out == "x" * size) is kept
    assert len(out) == min(size, 64)
    assert names.back(out) == "x" * size


def test_long_names_with_the_same_beginning_stay_different() -> None:
    names = ToolNames(["x" * 100 + "1", "x" * 100 + "2"], 64)
    assert len(names.known) == 2


def test_a_name_that_nobody_knows_comes_back_as_it_is() -> None:
    assert ToolNames(["f"], 64).back("g_1f0c9a3e") == "g_1f0c9a3e"


def test_an_alias_that_is_another_tools_name_is_not_given_to_two() -> None:
    alias = ToolNames(["a b"], 64).out("a b")
    names = ToolNames(["a b", alias], 64)
    assert names.out("a b") != names.out(alias) == alias
    assert names.back(names.out("a b")) == "a b"


def test_where_a_letter_must_come_first_one_does() -> None:
    assert ToolNames([], 64).out("21st") == "21st"
    assert ToolNames([], 64, letter_first=True).out("21st").startswith("_21st_")

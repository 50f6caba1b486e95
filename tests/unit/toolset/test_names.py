"""Which tool a name means (CHK-2): exact, then namespaces, then case and separators, then a suffix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.toolset.names import LONGEST_NAME, Match, NameIndex, find_name


def found(name: str, *names: str, counters: bool = False) -> str | None:
    return find_name(name, NameIndex(names), counters=counters).tool


def test_an_exact_name_needs_no_fix_chk_2() -> None:
    assert find_name("read_file", NameIndex(["read_file", "ReadFile"])) == Match("read_file")


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("functions.read_file", "read_file"),
        ("function.read_file", "read_file"),
        ("tools.read_file", "read_file"),
        ("tools/shell", "shell"),
        ("tool:shell", "shell"),
        ("default_api.shell", "shell"),
        ("functions.default_api.shell", "shell"),
        ("Functions.shell", "shell"),
    ],
)
def test_known_namespaces_are_stripped_chk_2(name: str, tool: str) -> None:
    assert find_name(name, NameIndex(["read_file", "shell"])) == Match(tool, (Fix("name: namespace stripped"),))


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("list", "List"),
        ("TodoTool_tool", "todo"),
        ("todo-tool", "todo"),
        ("TodoTool", "todo"),
        ("get-orders-at-risk-count", "GetOrdersAtRiskCount"),
        ("getOrdersAtRiskCount", "GetOrdersAtRiskCount"),
        ("sequential_thinking", "sequentialthinking"),
        ("functions.Sequential-Thinking", "sequentialthinking"),
        ("SEARCH TOOL", "search_tool"),
        ("SearchTool_tool", "search_tool"),
    ],
)
def test_case_and_separators_are_ignored_chk_2(name: str, tool: str) -> None:
    names = NameIndex(["List", "todo", "GetOrdersAtRiskCount", "sequentialthinking", "search_tool"])
    assert find_name(name, names) == Match(tool, (Fix("name: case and separators"),))


@pytest.mark.parametrize(
    ("name", "tool"),
    [("mclaw<|channel|>commentary", "mclaw"), ("lookup_zip\n", "lookup_zip"), (" lookup_zip<|x", "lookup_zip")],
)
def test_a_name_ends_at_a_special_token(name: str, tool: str) -> None:
    assert find_name(name, NameIndex(["mclaw", "lookup_zip"])) == Match(tool, (Fix("name: special token cut"),))


def test_a_name_in_any_script_is_a_name() -> None:
    assert find_name("获取天气", NameIndex(["获取天气"])) == Match("获取天气")
    assert found("functions.获取天气", "获取天气") == "获取天气"


def test_a_unique_suffix_is_enough_chk_2() -> None:
    match = find_name("read_file", NameIndex(["mcp__fs__read_file", "shell"]))
    assert match == Match("mcp__fs__read_file", (Fix("name: prefix added"),))
    assert found("fs__read_file", "mcp__fs__read_file", "mcp__git__read_file") == "mcp__fs__read_file"
    assert found("file", "mcp__fs__read_file") is None


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("ReadFile", ("read-file", "read_file")),
        ("read_file", ("mcp__fs__read_file", "mcp__git__read_file")),
        ("functions.READ_FILE", ("read-file", "readFile", "other")),
    ],
)
def test_two_candidates_are_ambiguous_chk_2(name: str, names: tuple[str, ...]) -> None:
    match = find_name(name, NameIndex(names))
    assert (match.tool, match.problem) == (None, Problem.AMBIGUOUS)
    assert set(match.candidates) == set(names) - {"other"}


def test_a_step_that_finds_one_ends_the_search() -> None:
    assert found("read_file", "Read_File", "mcp__fs__read_file") == "Read_File"
    assert found("READ", "read", "read_tool") == "read"
    assert found("functions.read", "read", "functions_read") == "read"


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("delete_files", ("delete_file", "read_file")),
        ("google:tool:shell:index:0", ("terminal", "shell")),
        ("add", ("shell",)),
        ("shel", ("shell",)),
        ("multi", ("multitool",)),
        ("multitool", ("multi",)),
        ("api_shell", ("shell",)),
        ("mcp__fs__read_file", ("read_file",)),
        ("shell:0", ("shell",)),
        ("", ("shell",)),
        ("<|channel|>", ("shell",)),
        ("functions.", ("shell",)),
        ("_", ("shell", "__")),
        ("tool", ("shell",)),
        ("shell", ()),
    ],
)
def test_likeness_is_not_enough_chk_2(name: str, names: tuple[str, ...]) -> None:
    assert find_name(name, NameIndex(names)) == Match(None, problem=Problem.UNKNOWN_TOOL)


def test_a_counter_is_cut_only_if_asked() -> None:
    names = NameIndex(["shell"])
    assert find_name("shell:0", names, counters=True) == Match("shell", (Fix("name: counter cut"),))
    assert find_name("shell:0", names) == Match(None, problem=Problem.UNKNOWN_TOOL)
    assert found("functions.shell:0", "shell", counters=True) == "shell"
    assert found("shell:12", "shell", counters=True) == "shell"
    assert found("shell:x", "shell", counters=True) is None


def test_a_name_is_looked_at_up_to_a_length_p7() -> None:
    def ends(length: int) -> str | None:
        return found("functions." + " " * (length - len("functions.shell")) + "shell", "shell")

    assert [ends(LONGEST_NAME - 1), ends(LONGEST_NAME), ends(LONGEST_NAME + 1)] == ["shell", "shell", None]


NAMES = st.text(st.sampled_from("aAbB_-. :/<|tolTOL"), max_size=12)


@given(st.lists(NAMES, max_size=5, unique=True), NAMES)
def test_what_is_found_is_a_tool_and_differs_only_in_what_may_differ_chk_2(names: list[str], name: str) -> None:
    match = find_name(name, NameIndex(names))
    assert (match.tool is None) == (match.problem is not None)
    if match.tool is not None:
        assert match.tool in names
        letters = "".join(filter(str.isalpha, match.tool)).casefold()
        written = "".join(filter(str.isalpha, name)).casefold()
        assert letters in written or written in letters


@given(st.lists(NAMES, max_size=5, unique=True))
def test_every_name_finds_itself(names: list[str]) -> None:
    assert [find_name(name, NameIndex(names)) for name in names] == [Match(name) for name in names]


@pytest.mark.parametrize(
    "name", ["functions." * 100_000, "Tool" * 100_000, "a" * 1_000_000, "_" * 1_000_000, "<|" * 500_000]
)
def test_a_hostile_name_costs_nothing_p8(name: str) -> None:
    index = NameIndex(["shell", "mcp__fs__read_file"])
    assert find_name(name, index).tool is None
    assert growth(lambda written: find_name(written, index), name[: len(name) // 2], name) < BAR

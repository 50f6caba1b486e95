"""`just house`: figures, layers, names, small modules and phrases of a tree, and the trace of a request."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.house import __main__ as house
from tools.house.figures import measure
from tools.house.layers import arrows_up
from tools.house.names import ALLOWED, repeated_names
from tools.house.phrases import count_phrases, find_phrases
from tools.house.returns import trace_request
from tools.house.rules import breaches
from tools.house.tree import Tree, committed
from tools.imports import cycles, distances

CONTRACT = """
[[tool.importlinter.contracts]]
name = "layers point down"
type = "layers"
containers = ["toolspeak"]
layers = ["(top)", "(left) | (right)", "bottom"]
"""
LONG = "x = 1\n" * 40
"""More lines than a small module has."""


def tree(root: Path, files: Mapping[str, str]) -> Tree:
    """Write a tree: the names are below `src/toolspeak`, without `.py`."""
    (root / "docs").mkdir(parents=True)
    (root / "pyproject.toml").write_text(CONTRACT)
    for name, source in {"__init__": "", **files}.items():
        file = root / "src" / "toolspeak" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return Tree(root)


def test_figures_of_a_tree(tmp_path: Path) -> None:
    first = "from toolspeak import bottom  # a reason\n\n# ----------------\ndef f() -> None:\n    bottom.g()\n"
    second = "def g() -> None:  # noqa: D103\n    pass\n"
    figures = measure(tree(tmp_path, {"top": first, "bottom": second}))
    assert (figures.files, figures.lines, figures.median_file) == (3, 7, 2)
    assert (figures.one_importer, figures.function_median, figures.function_longest) == (1, 2, 2)
    assert (figures.comments, figures.import_lines) == (figures.import_lines, pytest.approx(100 / 7))
    assert (figures.cycles, figures.arrows_up, figures.repeated_names) == (0, 0, 0)


def test_a_circle_is_found_also_inside_functions(tmp_path: Path) -> None:
    files = {"top": "def f():\n    from toolspeak.bottom import g\n", "bottom": "import toolspeak.top\n"}
    found = tree(tmp_path, files)
    assert found.cycles == [("toolspeak.bottom", "toolspeak.top")]
    assert any(breach.startswith("import cycle: toolspeak.bottom <-> toolspeak.top") for breach in breaches(found))


def test_two_circles_are_two() -> None:
    graph = {"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"], "e": ["a"]}
    assert cycles(graph) == [("a", "b"), ("c", "d")]


def test_distances_count_the_shortest_way() -> None:
    assert distances({"a": ["b", "c"], "b": ["c"], "c": [], "d": []}, "a") == {"a": 0, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("files", "arrows"),
    [
        ({"top": "import toolspeak.bottom", "bottom": ""}, []),
        ({"top": "", "bottom": "from toolspeak import top"}, [("toolspeak.bottom", "toolspeak.top")]),
        ({"left/a": "import toolspeak.right", "right": ""}, [("toolspeak.left.a", "toolspeak.right")]),
        ({"left/a": "import toolspeak.left.b", "left/b": ""}, []),
        ({"unlisted": "import toolspeak.top", "top": ""}, []),
    ],
)
def test_imports_up_and_sideways(tmp_path: Path, files: dict[str, str], arrows: list[tuple[str, str]]) -> None:
    assert arrows_up(tree(tmp_path, files)) == arrows


def test_a_colon_lets_siblings_import_each_other(tmp_path: Path) -> None:
    found = tree(tmp_path, {"left/a": "import toolspeak.right", "right": ""})
    (tmp_path / "pyproject.toml").write_text(CONTRACT.replace("|", ":"))
    assert arrows_up(found) == []


def test_a_public_name_in_two_modules_is_a_breach(tmp_path: Path) -> None:
    files = {"top": "class Line: ...\nclass _Own: ...", "left/a": "Line: TypeAlias = int\nclass _Own: ..."}
    found = tree(tmp_path, files)
    assert repeated_names(found) == {"Line": ["toolspeak.left.a", "toolspeak.top"]}
    assert [breach.split(" in ")[0] for breach in breaches(found)] == ["name defined twice: Line"]


def test_what_wires_share_is_allowed_among_wires_only(tmp_path: Path) -> None:
    function = "def decode_turn(): ..."
    assert repeated_names(tree(tmp_path / "1", {"wires/a": function, "wires/b/c": function})) == {}
    both = {"wires/a": function, "wires/b": function, "wireside": function}
    assert list(repeated_names(tree(tmp_path / "2", both))) == ["decode_turn"]


def test_every_allowed_name_has_a_reason() -> None:
    assert all(len(entry.reason) > 10 for entry in ALLOWED)


@pytest.mark.parametrize(
    ("source", "broken"),
    [
        ('"""A part."""\n', True),
        ('"""A part.\n\nOne importer: it is loaded on demand.\n"""\n', False),
        ('"""A part.\n\nOne importer: \n"""\n', True),
        (LONG, False),
    ],
)
def test_a_small_module_with_one_importer_needs_a_reason(tmp_path: Path, source: str, broken: bool) -> None:
    found = tree(tmp_path, {"top": "import toolspeak.bottom", "bottom": source})
    assert any(breach.startswith("src/toolspeak/bottom.py:") for breach in breaches(found)) is broken


def test_phrases_are_counted_by_line(tmp_path: Path) -> None:
    found = tree(tmp_path, {"top": '"""Say it. Who asks stands behind the model; nobody knows."""\n'})
    (tmp_path / "docs" / "page.md").write_text(
        "The model behind the gateway.\nWhat was read is kept.\nUsers who ask.\n"
    )
    counts = count_phrases(list(find_phrases(found)))
    assert {phrase.split()[0].strip(","): count for phrase, count in counts.items() if count} == {
        "behind": 1,
        "stand": 1,
        "nobody": 1,
        "who": 1,
        "what": 1,
        "Say": 1,
    }


def test_a_request_of_this_tree_can_be_traced() -> None:
    trace = trace_request(house.ROOT)
    assert trace.get("error") is None
    assert trace["returns"] > trace["files"] > 5


def test_a_tree_that_cannot_be_traced_tells_why(tmp_path: Path) -> None:
    assert "take_turn" in trace_request(tree(tmp_path, {}).root)["error"]


def test_a_commit_is_read_without_a_checkout(tmp_path: Path) -> None:
    tree(tmp_path, {"top": "class Old: ..."})
    (tmp_path / "docs" / "page.md").write_text("Text.\n")
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "src" / "toolspeak" / "top.py").write_text("class New: ...")
    with committed(tmp_path, "HEAD") as before:
        assert before.modules["toolspeak.top"].source == "class Old: ..."
    with pytest.raises(subprocess.CalledProcessError), committed(tmp_path, "no-such-commit"):
        pass

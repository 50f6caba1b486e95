"""What never touches model output (SAFE-5): no evaluation, no XML parser, no pattern that can track back for long."""

import ast
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

import toolspeak

SOURCES = sorted(Path(toolspeak.__file__).parent.rglob("*.py"))
EVALUATES = {"eval", "exec", "compile", "literal_eval", "__import__"}
PARSES = ("xml", "html.parser", "pickle", "marshal", "lxml", "bs4", "yaml")


def names_in(source: Path) -> Iterator[str]:
    """Yield what a file imports, and what it calls."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield f"{node.func.id}()"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nothing_is_evaluated_and_no_xml_parser_is_there_safe5(source: Path) -> None:
    names = set(names_in(source))
    assert not names & {f"{name}()" for name in EVALUATES}
    assert not [name for name in names if name.split(".")[0] in PARSES or name in PARSES]


HOSTED = ("toolspeak.integrations.litellm", "toolspeak.integrations.sglang", "toolspeak.integrations.vllm")
"""Modules that only load inside another program, and so have no patterns."""
PATTERNS: dict[str, Any] = {
    f"{module.name}.{name}": pattern
    for module in walk_packages(toolspeak.__path__, "toolspeak.")
    if module.name not in HOSTED
    for name, pattern in vars(import_module(module.name)).items()
    if isinstance(pattern, re.Pattern)
}


@pytest.mark.parametrize("name", HOSTED)
def test_a_module_that_cannot_be_loaded_here_has_no_patterns(name: str) -> None:
    (source,) = [path for path in SOURCES if path.match(f"{name.replace('.', '/')}.py")]
    assert "re" not in names_in(source)


PARSER: Any = import_module("re._parser")


def nested(tree: Any, *, inside: bool = False) -> bool:  # noqa: ANN401 -- the standard library's own tree has no types
    """Tell whether an endless repetition holds another one; what never gives back does not count."""
    for operation, value in tree:
        kind = str(operation)
        endless = kind in ("MAX_REPEAT", "MIN_REPEAT") and value[1] is PARSER.MAXREPEAT
        kept = inside and kind not in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT")
        if (endless and inside) or any(nested(branch, inside=kept or endless) for branch in branches(kind, value)):
            return True
    return False


def branches(kind: str, value: Any) -> Sequence[Any]:  # noqa: ANN401 -- as above
    match kind:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [value[2]]
        case "SUBPATTERN":
            return [value[3]]
        case "ATOMIC_GROUP":
            return [value]
        case "ASSERT" | "ASSERT_NOT":
            return [value[1]]
        case "BRANCH":
            return value[1]
        case _:
            return []


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())
def test_no_pattern_repeats_inside_a_repetition_safe5(pattern: re.Pattern[str] | re.Pattern[bytes]) -> None:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    assert not nested(PARSER.parse(text, pattern.flags & ~re.UNICODE))


@pytest.mark.parametrize(
    ("pattern", "bad"), [("(a+)+", True), ("(?:a|b*)*c", True), ("(a++)+", False), ("a+b+", False)]
)
def test_the_look_at_patterns_sees_what_backtracks_safe5(pattern: str, bad: bool) -> None:
    assert nested(PARSER.parse(pattern)) is bad

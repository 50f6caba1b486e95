"""The dialect `any` is derived from what each dialect says of itself."""

from collections.abc import Generator, Iterable
from functools import reduce
from pathlib import Path

import pytest

from testkit.foreign_dialects import dialect_source, install
from toolspeak import dialects
from toolspeak.dialects.any import DIALECT, rescuers
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.dialects.core.lookup import MarkerTable, MarkerTables

WRITTEN_BY_HAND = (
    *("hermes", "jamba", "nemotron", "llama_json", "mistral", "dsml", "invoke_xml", "glm", "minimax", "pythonic"),
    *("tool_code", "json_action", "fenced", "lmstudio", "tag_json", "deepseek", "kimi", "kimi_k3", "gemma"),
    *("function_gemma", "lfm2", "granite", "phi", "olmo", "cohere", "longcat", "internlm", "apertus", "gigachat"),
    *("inkling", "firefunction", "solar", "seed", "dots", "step3", "qwen_star", "harmony"),
)
"""The set, in the order in which it was kept by hand and measured before it was derived."""
LOOK_LIKE_PROSE_OR_DATA = {
    *("cline", "decision_json", "functionary", "hy3", "inline_json", "langchain", "llama4", "minicpm"),
    *("minimax_m1", "muse", "qwen_xml", "react", "steps_json"),
}


def joined(grammars: Iterable[MarkupGrammar]) -> MarkupGrammar:
    return reduce(lambda one, other: one | other, grammars)


def parts() -> dict[str, MarkupGrammar]:
    return {dialect.name: dialect.rescue for dialect in rescuers() if dialect.rescue is not None}


def test_the_dialects_that_rescue_are_these() -> None:
    assert sorted(parts()) == sorted(WRITTEN_BY_HAND)
    assert set(dialects.names()) - {*WRITTEN_BY_HAND, "any"} == LOOK_LIKE_PROSE_OR_DATA


def test_every_marker_does_what_it_did_in_the_order_written_by_hand() -> None:
    """The derived order is another one, but compiled there is no difference: which form is tried first stays."""
    by_hand, derived = joined(parts()[name] for name in WRITTEN_BY_HAND), DIALECT.grammar
    old, new = vars(MarkerTables(by_hand)), vars(MarkerTables(derived))
    tables = {name for name, value in old.items() if isinstance(value, MarkerTable)}
    assert tables == {"start", "line", "anywhere"}
    for name in tables:
        assert new[name]._actions == old[name]._actions
    assert new["points"].literals == old["points"].literals
    compared = set(old) - tables - {"points"}
    assert {name: new[name] for name in compared} == {name: old[name] for name in compared}
    assert derived.reasoning == by_hand.reasoning  # the first one is meant where a template has opened it


def test_any_reads_what_they_read_and_nothing_else() -> None:
    assert joined(parts().values()) == DIALECT.grammar
    for name, grammar in parts().items():
        own = dialects.load(name).grammar
        assert {*grammar.wrappers} <= {*own.wrappers}
        assert {*grammar.specials} <= {*own.specials}


def test_only_the_half_of_harmony_with_its_tokens_rescues() -> None:
    assert parts()["harmony"] != dialects.load("harmony").grammar


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Put a package on the path whose dialects are `foreign`, which rescues, and `silent`, which does not."""
    modules = {
        "foreign_dialect": dialect_source("foreign", "@@", ", rescues=True"),
        "silent_dialect": dialect_source("silent", "%%"),
    }
    entries = {"foreign": "foreign_dialect", "silent": "silent_dialect", "hermes": "silent_dialect"}
    install(tmp_path, monkeypatch, modules, entries)
    yield tmp_path
    dialects.load.cache_clear()


def test_a_foreign_dialect_rescues_after_ours_and_cannot_take_the_name_of_ours(foreign: Path) -> None:
    del foreign
    *ours, last = parts()
    assert (sorted(ours), last) == (sorted(WRITTEN_BY_HAND), "foreign")
    assert dialects.load("hermes").writer is not None


def test_a_foreign_dialect_that_cannot_be_loaded_is_left_out_with_a_warning(foreign: Path) -> None:
    (foreign / "silent_dialect.py").write_text("raise OSError('no such font')\n")
    with pytest.warns(RuntimeWarning, match=r"dialect 'silent' cannot be loaded: OSError\('no such font'\)"):
        assert "foreign" in parts()

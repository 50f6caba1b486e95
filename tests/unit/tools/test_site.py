"""`just site` reads the repository's Markdown as GitHub does, and finds each kind of fault in what it builds."""

from pathlib import Path

import pytest

from tools.site import pages
from tools.site.faults import faults
from tools.site.pages import Section, collect, sections, sources
from tools.site.texts import index, summary, write_texts

HEAD = '<html><head><link rel="stylesheet" href="a.css"></head><body>'


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with one page in docs/ and one at the top."""
    (tmp_path / "docs" / "agents").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").touch()
    (tmp_path / "SECURITY.md").write_text("# Security\n\nSee [home](docs/index.md#top).\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(pages, "TOP_PAGES", {"SECURITY.md": "security-model.md"})
    return tmp_path


def collected(repository: Path, text: str, name: str = "index.md") -> str:
    (repository / "docs" / "index.md").write_text("# Home\n")
    (repository / "docs" / name).write_text(text)
    collect(repository / "out")
    return (repository / "out" / name).read_text()


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("index.md", "[s](../SECURITY.md#what)", "[s](security-model.md#what)"),
        ("agents/a.md", "[s](../../SECURITY.md)", "[s](../security-model.md)"),
        ("agents/a.md", "[h](../index.md)", "[h](../index.md)"),
        ("index.md", "the [code](../src/code.py) of it", "the code of it"),
        ("index.md", "[gone](gone.md)", "[gone](gone.md)"),
        ("index.md", "[out](https://example.com/a.md)", "[out](https://example.com/a.md)"),
        ("index.md", "Text:\n- one\n- two\n", "Text:\n\n- one\n- two\n"),
        ("index.md", "1. one\n   - inner\n", "1. one\n    - inner\n"),
        ("index.md", "```\nText:\n- [s](../SECURITY.md)\n```\n", "```\nText:\n- [s](../SECURITY.md)\n```\n"),
        (
            "index.md",
            "```mermaid\nstateDiagram-v2\n    [*] --> a: first\n    a --> b\n```\n",
            "| from | to | when |\n| --- | --- | --- |\n| start of the turn | `a` | first |\n| `a` | `b` | always |\n",
        ),
    ],
)
def test_a_page_is_collected_as_the_site_needs_it(repository: Path, name: str, text: str, wanted: str) -> None:
    assert collected(repository, text, name) == wanted


def test_a_page_of_the_top_folder_links_to_the_others(repository: Path) -> None:
    collected(repository, "# Home\n")
    assert "[home](index.md#top)" in (repository / "out" / "security-model.md").read_text()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">x</a>', "dead link: gone.html"),
        ('<a href="b.html#gone">x</a>', "dead anchor: b.html#gone"),
        ('<a href="#gone">x</a>', "dead anchor: #gone"),
        (
            '<script src="https://cdn.example.com/x.js"></script>',
            "loads https://cdn.example.com/x.js from another host",
        ),
        ('<img src="//cdn.example.com/x.png">', "loads //cdn.example.com/x.png from another host"),
        ("<style>@import 'x'</style>", "style loads from another host"),
        ('<p style="background: url(https://a.example)"></p>', "style loads from another host"),
        ('<pre class="mermaid">x</pre>', "class 'mermaid' makes the theme load"),
        ("<p>Text:\n- one</p>", "Markdown is left in: '- one'"),
    ],
)
def test_each_fault_of_a_page_is_found(tmp_path: Path, body: str, fault: str) -> None:
    site = written(tmp_path, body)
    [found] = faults(site, [Section("", ("a.md", "b.md"))], {"a.md", "b.md"})
    assert found.startswith("a.html: ")
    assert fault in found


def test_a_page_without_faults_has_none(tmp_path: Path) -> None:
    fine = '<a href="b.html#there">x</a> <a href="https://example.com">y</a> <p><code>\n- one</code></p>'
    assert not list(faults(written(tmp_path, fine), [Section("", ("a.md", "b.md"))], {"a.md", "b.md"}))


def test_gaps_of_the_site_are_found(tmp_path: Path) -> None:
    site = written(tmp_path, "")
    (site / "a.md").unlink()
    (site / "a.css").write_text("a { background: url(https://cdn.example.com/x) }")
    found = list(faults(site, [Section("", ("a.md", "b.md", "b.md"))], {"a.md", "b.md", "c.md"}))
    assert [fault.partition(":")[0] for fault in found] == ["c.md", "b.md", "a.html", "a.css"]


def written(folder: Path, body: str) -> Path:
    site = folder / "site"
    site.mkdir()
    for name, text in (("a", HEAD + body), ("b", f'{HEAD}<h1 id="there">b</h1>')):
        (site / f"{name}.html").write_text(text)
        (site / f"{name}.md").touch()
    (site / "a.css").touch()
    return site


def test_the_navigation_has_every_page() -> None:
    named = [name for section in sections() for name in section.pages]
    assert sorted(named) == sorted(sources())
    assert [section.name for section in sections()] == ["", "Tutorials", "How-to", "Reference", "Explanation"]


def test_programs_get_a_list_twins_and_the_whole_text(tmp_path: Path) -> None:
    source, site = tmp_path / "pages", tmp_path / "site"
    source.mkdir()
    site.mkdir()
    (source / "a.md").write_text("# A page\n\nAfter [it](b.md)\nyou know.\n\nMore.\n")
    parts = [Section("How-to", ("a.md",))]
    write_texts(source, site, parts)
    assert list(index(source, parts))[1:] == ["\n## How-to\n", "- [A page](a.md): After it you know."]
    assert (site / "a.md").read_text() == (source / "a.md").read_text()
    assert "More." in (site / "llms-full.txt").read_text()
    assert (site / "llms.txt").read_text().startswith("# toolspeak\n")


def test_a_long_summary_is_cut_between_words() -> None:
    cut = summary(f"# T\n\n{'word ' * 100}\n")
    assert len(cut) <= 302
    assert cut.endswith("word …")

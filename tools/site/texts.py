"""Writes the files for programs: a Markdown twin of each page, `llms.txt` (the list) and `llms-full.txt` (all text).

See https://llmstxt.org for the form. Links are relative, so the files work on any host and from a folder.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.site.pages import Section

TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
HEAD = """\
# toolspeak

> Tool calling for every language model: a gateway, a Python library and an agent runner. Clients speak OpenAI Chat,
> OpenAI Responses, Anthropic, Gemini or Ollama; the model needs no tool calling of its own.

Each page of the documentation exists as HTML and, under the same name, as Markdown.
"""
SUMMARY_LENGTH = 300


def write_texts(pages: Path, site: Path, sections: list[Section]) -> None:
    """Write all of it into the site."""
    names = [name for section in sections for name in section.pages]
    for name in names:
        shutil.copyfile(pages / name, site / name)
    (site / "llms.txt").write_text("\n".join(index(pages, sections)) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text(
        "\n\n".join(f"<!-- {name} -->\n\n{(pages / name).read_text(encoding='utf-8').strip()}" for name in names)
        + "\n",
        encoding="utf-8",
    )


def index(pages: Path, sections: list[Section]) -> Iterator[str]:
    """Yield the lines of llms.txt."""
    yield HEAD.rstrip()
    for section in sections:
        yield f"\n## {section.name or 'Start'}\n"
        for name in section.pages:
            text = (pages / name).read_text(encoding="utf-8")
            yield f"- [{title(text)}]({name}): {summary(text)}"


def title(text: str) -> str:
    """Return the first heading of a page."""
    found = TITLE.search(text)
    return found[1] if found else ""


def summary(text: str) -> str:
    """Return the first paragraph after the title, on one line, without links."""
    paragraphs = text.partition("\n# ")[2] or text
    first = next((part for part in paragraphs.split("\n\n")[1:] if part.strip()[:1] not in set("#|`<!")), "")
    line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return line if len(line) <= SUMMARY_LENGTH else line[:SUMMARY_LENGTH].rpartition(" ")[0] + " …"

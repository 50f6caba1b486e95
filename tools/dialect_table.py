"""Writes docs/dialects.md from the dialects themselves; with `--check`, fails if the page is stale."""

import sys
from importlib import import_module
from pathlib import Path

from toolspeak import dialects
from toolspeak.dialects.template_export import Unfit, export

PAGE = Path(__file__).parent.parent / "docs" / "dialects.md"
HEAD = """# Dialects

A dialect is a text form of a tool call. toolspeak reads all of these. *Writes* says whether it can also teach the
dialect to a model: put the tools in a prompt, and write calls and results as the model should see them. *Exports* says
whether it can be written as a [response template](#response-templates).

A dialect that is written is a module of its own, `src/toolspeak/dialects/<name>.py`; the others are rows of
`src/toolspeak/dialects/table.py`. To add one, see [your first dialect](first-dialect.md).

Numbers such as D24 are those of the samples in `src/toolspeak/conformance/data/samples.jsonl`. `just docs`
generates this page from the dialects.

| dialect | writes | exports | what it looks like |
| --- | --- | --- | --- |
"""
TAIL = """
`keyed` is made for one conversation by its key (`toolspeak.dialects.keyed`): only markers with that key are calls.

From outside, the entry point group `toolspeak.dialects` adds more: each a `Dialect`, or a module with a `DIALECT`. See
[plugins](plugins.md).

## Response templates

A `response_template` in a model's `tokenizer_config.json` describes how the model writes calls and reasoning.
transformers from 5.13 on, vLLM from 0.32 on (`--tool-call-parser hf`) and SGLang from 0.5.23 on read it. toolspeak
reads it too, and writes it.

### Read the template of a model

Name the file in the facts of a model, or of an upstream with one model:

```toml
[models.new-model]
model = "acme/new-model"
facts.response_template = "/models/new-model/tokenizer_config.json"
```

Calls that the server leaves in the text are then read as the template describes them (CAP-8). A file that holds only
the template is accepted as well. A vLLM server that runs with `--enable-tokenizer-info-endpoint` shows its
`tokenizer_config.json`: `curl http://127.0.0.1:8000/tokenizer_info > tokenizer_config.json`. toolspeak knows of
no other server that does.

The template becomes a grammar of toolspeak, and none of its patterns runs. Content is `json` or `xml-inline`;
patterns are made of literals, blanks, alternatives and named runs of characters. Another template is refused when
toolspeak starts, with the field and the reason. If the prompt opens the reasoning, set `facts.starts_in_reasoning` as
well.

From Python, `template_dialect(template, name)` in `toolspeak.dialects.response_template` returns the dialect.

toolspeak differs from the reader of transformers where that one would raise an error or lose something: a broken call
is repaired or complained about, a mark inside a JSON string is data, a quoted example is text, a value in tags keeps
its blanks, and the text before a call stays when text follows.

### Export a dialect

```sh
toolspeak dialects export qwen_xml --start-anchor '<|im_start|>assistant\\n'
```

The start anchor is the end of the model's generation prompt: readers search the prompt for it, to find where the
answer begins. Add what is printed to `tokenizer_config.json`. The template describes the form that the newest models
of a dialect write; a text after calls replaces the text before them, because vLLM and SGLang refuse the key `join`.
These dialects do not fit:

| dialect | why |
| --- | --- |
{unfit}"""
ANCHOR = "-"
"""Any start anchor: whether a dialect fits does not depend on it."""


def row(name: str) -> str:
    """Return the row of one dialect."""
    dialect = dialects.load(name)
    summary = dialect.summary or (import_module(f"toolspeak.dialects.{name}").__doc__ or "").split("\n", 1)[0]
    writes = "yes" if dialect.writer is not None else ""
    exports = "" if isinstance(export(dialect, ANCHOR), Unfit) else "yes"
    return f"| {name} | {writes} | {exports} | {summary.replace('|', chr(92) + '|')} |\n"


def unfit() -> str:
    """Return a row for each dialect that cannot be exported."""
    found = ((name, export(dialects.load(name), ANCHOR)) for name in dialects.names())
    return "".join(f"| {name} | {one.reason} |\n" for name, one in found if isinstance(one, Unfit))


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(row(name) for name in dialects.names()) + TAIL.replace("{unfit}", unfit())


def main() -> None:
    """Write or check."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()

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

A dialect that toolspeak writes has its own module, `src/toolspeak/dialects/<name>.py`; the others are rows of
`src/toolspeak/dialects/table.py`. To add one, see [your first dialect](first-dialect.md).

Numbers such as D24 refer to the samples in `src/toolspeak/conformance/data/samples.jsonl`. `just docs` generates
this page from the dialects.

| dialect | writes | exports | what it looks like |
| --- | --- | --- | --- |
"""
TAIL = """
toolspeak builds `keyed` for one conversation from a key (`toolspeak.dialects.keyed`): only markers with that key are
calls.

Packages can add dialects through the entry point group `toolspeak.dialects`. Each is a `Dialect`, or a module with a
`DIALECT`. See [plugins](plugins.md).

## Response templates

A `response_template` in a model's `tokenizer_config.json` describes how the model writes calls and reasoning.
transformers (5.13 and later), vLLM (0.32 and later, with `--tool-call-parser hf`) and SGLang (0.5.23 and later) read
it. toolspeak reads and writes it.

### Read the template of a model

Name the file in the facts of a model, or of an upstream with one model:

```toml
[models.new-model]
model = "acme/new-model"
facts.response_template = "/models/new-model/tokenizer_config.json"
```

toolspeak then reads calls that the server leaves in the text as the template describes them (CAP-8). It also accepts a
file that contains only the template. A vLLM server that runs with `--enable-tokenizer-info-endpoint` returns its
`tokenizer_config.json`: `curl http://127.0.0.1:8000/tokenizer_info > tokenizer_config.json`. We know of no other
server that does.

toolspeak translates the template into a grammar, and never executes its patterns. Content must be `json` or
`xml-inline`; patterns may contain literals, blanks, alternatives and named runs of characters. toolspeak rejects any
other template at startup, and names the field and the reason. If the prompt opens the reasoning, also set
`facts.starts_in_reasoning`.

From Python, `template_dialect(template, name)` in `toolspeak.dialects.response_template` returns the dialect.

toolspeak differs from the transformers reader where that reader would raise an error or lose data. toolspeak repairs a
broken call or records a complaint, treats a mark inside a JSON string as data and a quoted example as text, preserves
the blanks of a value in tags, and keeps the text before a call when text follows.

### Export a dialect

```sh
toolspeak dialects export qwen_xml --start-anchor '<|im_start|>assistant\\n'
```

The start anchor is the end of the model's generation prompt. Readers search the prompt for it to find where the
answer begins. Add the output to `tokenizer_config.json`. The template describes the form that the newest models of a
dialect write. Text after calls replaces the text before them, because vLLM and SGLang reject the key `join`. These
dialects cannot be exported:

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

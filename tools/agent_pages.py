"""Writes docs/agents/: a page for each agent, from how `toolspeak launch` starts it and what the client tests measured.

Also writes the table of docs/apps.md, whose lines are written by hand and read by the client tests.

With `--check`, exits with an error if the pages are stale, and writes nothing. `just clients-all` makes the results.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.clients.apps import CLIENTS
from tests.clients.pages import APPS
from tests.clients.rows import SETTINGS, Row, rows
from tools import figures
from tools.clients_table import ROOT, URL, Result, results, told
from toolspeak.cli.launch.agents import AGENTS, Agent, AgentTarget, Recipe
from toolspeak.cli.launch.shell_lines import shell_lines

FOLDER = ROOT / "docs" / "agents"
INDEX = "index.md"
TARGET = AgentTarget(URL, "MODEL", Path("/tmp/toolspeak"))  # noqa: S108 # only shown
LANGUAGES = {".json": "json", ".yaml": "yaml"}
WIRES = {
    "openai_chat": "OpenAI Chat",
    "openai_responses": "OpenAI Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
}

HEAD = """\
# {title} on a local model

After this page {title} works with your own model, whether or not the model has tool calling.

```sh
toolspeak launch {name}
```

The command finds the gateway or starts one, chooses the model, and does not change your files: see
[launch](../launch.md). If {title} is not installed, install it:

```sh
{install}
```

"""
BY_HAND = """\
## Without launch

Start the gateway in front of your model server, and leave it running. It finds Ollama, llama.cpp, LM Studio, vLLM and
SGLang on this machine; for any other server, add `--upstream URL`.

```sh
toolspeak serve
```

Then start {title} with these settings. It uses the {wire} API. `MODEL` can be any name: if no upstream has a model with
this name, the gateway uses the first model of the first upstream. If the gateway requires a key, use that key instead
of `none`: [keys and tenants](../keys.md).

"""
OTHERS = """\
## Other protocols

The gateway serves all protocols on one port. `--api` chooses one. Without launch, only these lines change:

"""
TESTED = """\
## What was tested

{title} {version} was tested against a scripted model server through the gateway, with the settings above and with
options that let it answer one prompt without a terminal. It {does}, and the resulting file is correct to the byte. The
table shows the seconds from start to exit; combinations with an empty cell were not run. The server *ignores* `tools`,
has *native* tool calling, *leaks* calls as text, or *refuses* tools with the error message of a real server.

"""
WRONG = """\

If a call is missing or wrong, [debug it](../debug-a-call.md). [The doctor](../doctor.md) measures which form of tool
calling works best for your model.
"""
INDEX_HEAD = """\
# Agents

After this page you know which agents toolspeak is tested with, and where to find the setup of each.
[Clients](../clients.md) covers the SDKs, and has all figures of the tests.

| agent | command | tested version | protocols |
| --- | --- | --- | --- |
"""
INDEX_END = """\

[Apps and editors](../apps.md) has the configuration of Open WebUI and Zed, and the configuration files of opencode,
Continue, Cline and Aider. Any other agent with a configurable provider base URL works the same way: set it to
`http://127.0.0.1:4141/v1` for OpenAI, or to `http://127.0.0.1:4141` for Anthropic, Gemini and Ollama.
"""


def slug(agent: Agent) -> str:
    """Return the name of an agent's page."""
    return re.sub(r"[^a-z0-9]+", "-", agent.title.lower()).strip("-")


def tested_row(agent: Agent) -> Row:
    """Return the row of the client tests that starts an agent as its page does."""
    wire = next(iter(agent.recipes))
    return next(row for row in rows() if (row.client, row.wire) == (agent.title, wire))


# ---------------------------------------------------------------- how to start


def page(agent: Agent, found: Sequence[Result]) -> str:
    """Return the page of an agent."""
    (wire, make), *others = agent.recipes.items()
    usual = make(TARGET)
    parts = [
        HEAD.format(title=agent.title, name=agent.name, install=agent.install),
        BY_HAND.format(title=agent.title, wire=WIRES[wire]),
        *_files(usual),
        fence("sh", _lines(agent, usual)),
    ]
    if others:
        parts.append(OTHERS)
        parts += [_difference(agent, api, usual, other(TARGET)) for api, other in others]
    return "".join([*parts, *_tested(agent, found), WRONG])


def _files(recipe: Recipe) -> Iterator[str]:
    for path, text in recipe.files.items():
        block = fence(LANGUAGES.get(path.suffix, "text"), text.rstrip().splitlines())
        yield f"`{path}`; you can replace `{TARGET.folder}` with any other folder:\n\n{block}"


def _lines(agent: Agent, recipe: Recipe) -> list[str]:
    unset = [f"unset {' '.join(agent.unset)}"] if agent.unset else []
    return [*unset, *shell_lines(agent.program, replace(recipe, files={}), agent.interactive)]


def _difference(agent: Agent, api: str, usual: Recipe, other: Recipe) -> str:
    """Return the lines that another protocol changes, in files, variables and command."""
    before = set(shell_lines(agent.program, usual, agent.interactive))
    changed = [line for line in shell_lines(agent.program, other, agent.interactive) if line not in before]
    command = fence("sh", [f"toolspeak launch {agent.name} --api {api}"])
    return f"### {WIRES[api]}\n\n{command}{fence('text', changed)}"


def fence(language: str, lines: Sequence[str]) -> str:
    """Return a block of code."""
    return "\n".join([f"```{language}", *lines, "```", "", ""])


# ---------------------------------------------------------------- what was tested


def _tested(agent: Agent, found: Sequence[Result]) -> Iterator[str]:
    row = tested_row(agent)
    does = "runs its tool" if row.calls else "edits from plain text, without tools"
    yield TESTED.format(title=agent.title, version=row.version, does=does)
    mine = [result for result in found if result["client"].partition(",")[0] == agent.title]
    columns = list(dict.fromkeys((result["client"], result["wire"]) for result in mine))
    cells = {(result["client"], result["wire"], result["upstream"]): _cell(result) for result in mine}
    yield f"| server | {' | '.join(_column(*column) for column in columns)} |\n| --- |{' --- |' * len(columns)}\n"
    for name in [setting.name for setting in SETTINGS if any(setting.name == key[2] for key in cells)]:
        yield f"| {name} | {' | '.join(cells.get((*column, name), '') for column in columns)} |\n"


def _column(client: str, wire: str) -> str:
    variant = client.partition(", ")[2]
    return f"{WIRES[wire]}, {variant}" if variant else WIRES[wire]


def _cell(result: Result) -> str:
    return f"{result['seconds']:.1f} s" if result["passed"] else told(result)


def apps(found: Sequence[Result]) -> Iterator[str]:
    """Yield the table of the apps: what ran with the lines of their page."""
    yield "| app | version | result | requests of the app, of the gateway |\n| --- | --- | --- | --- |\n"
    measured = {result["client"]: result for result in found if result["upstream"] == SETTINGS[0].name}
    for app, client in CLIENTS.items():
        if result := measured.get(client):
            requests = f"{result['client_requests']} → {result['upstream_requests']}"
            yield f"| {app} | {result['version']} | {told(result)} | {requests} |\n"


# ---------------------------------------------------------------- the list


def index() -> Iterator[str]:
    """Yield the page that lists all agents."""
    yield INDEX_HEAD
    for agent in AGENTS.values():
        wires = ", ".join(WIRES[wire] for wire in agent.recipes)
        command = f"`toolspeak launch {agent.name}`"
        yield f"| [{agent.title}]({slug(agent)}.md) | {command} | {tested_row(agent).version} | {wires} |\n"
    yield INDEX_END


def pages() -> dict[Path, str]:
    """Return all files of the folder, and the page of apps."""
    measured = results()
    written = {FOLDER / f"{slug(agent)}.md": page(agent, measured) for agent in AGENTS.values()}
    tabled = figures.page(APPS.read_text(encoding="utf-8"), [lambda: apps(measured)])
    return written | {FOLDER / INDEX: "".join(index()), APPS: tabled}


def main() -> None:
    """Write or check."""
    wanted = pages()
    there = {*FOLDER.glob("*.md"), APPS}
    if "--check" not in sys.argv:
        FOLDER.mkdir(exist_ok=True)
        for path in there - set(wanted):
            path.unlink()
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
    elif there != set(wanted) or any(path.read_text(encoding="utf-8") != text for path, text in wanted.items()):
        sys.exit("docs/agents or docs/apps.md is stale: run `python -m tools.agent_pages`")


if __name__ == "__main__":
    main()

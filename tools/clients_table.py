"""Writes docs/clients.md from `bench/results/clients.json`.

With `--check`, only checks whether it is up to date. `just clients-all` makes the results.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from tests.clients.rows import SETTINGS, Row, rows

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "clients.md"
RESULTS = ROOT / "bench" / "results" / "clients.json"

Result: TypeAlias = Mapping[str, Any]

URL = "http://127.0.0.1:4141"

HEAD = f"""\
# Clients

Each row is a real agent or SDK, in the version below, that talks through `toolspeak serve` to a model without tool
calling. The client really ran its tool: the file that the model requested exists with exactly the right bytes, and the
client showed the model's last words. `just clients` runs the fast rows, `just clients-all` runs all of them; both run
in a network namespace that has only loopback. This page is generated from what those commands start and measure.

## How to point a client at toolspeak

[`toolspeak launch AGENT`](launch.md) configures an agent, and [each agent has a page](agents/index.md) with the
commands to type instead. [Apps and editors](apps.md) and [JavaScript](javascript.md) have pages with their own
configuration. For an SDK, start the gateway (`toolspeak serve --upstream http://127.0.0.1:8080/v1`) and set the base
URL. Any model name works: a name that the upstream does not know selects its first model. If a client requires a key,
any text works, unless the gateway was started with `--key`.

| SDK | what it needs |
| --- | --- |
| openai | `base_url="{URL}/v1"`, or `OPENAI_BASE_URL` |
| anthropic | `base_url="{URL}"`, or `ANTHROPIC_BASE_URL` |
| google-genai | `http_options={{"base_url": "{URL}"}}`, or `GOOGLE_GEMINI_BASE_URL` |
| ollama | `host="{URL}"`, or `OLLAMA_HOST` |
| Vercel ai | `baseURL` of the provider: `{URL}/v1`, for Google `{URL}/v1beta`, for Ollama `{URL}/api` |
| langchain, pydantic-ai, openai-agents, smolagents | `base_url` of the model or its provider, as for the vendor's SDK |

"""

RAN = """\
## What ran

The upstream answers in plain text and ignores tools (`--mode force`). Its calls arrive as text, in chunks of four
characters. *Requests* shows the client's requests → the requests that reached the upstream. Seconds are wall time on a
shared machine with two cores, including the start of the client.

| client | version | wire | result | seconds | requests |
| --- | --- | --- | --- | --- | --- |
"""

EVERY = """\
## The same against other upstreams

Each cell shows seconds, or what went wrong. *native* supports tool calling, *leaks* accepts tools and returns the call
as text, *refuses* rejects requests that have tools, in the words of a real server; for these the mode is `auto`. The
other upstreams ignore tools, and the model writes in another dialect, or the upstream speaks another protocol.

"""


# ---------------------------------------------------------------- the results


def results() -> list[Result]:
    """Read what `just clients-all` has measured."""
    return cast("list[Result]", json.loads(RESULTS.read_text(encoding="utf-8")))


def ran(found: Sequence[Result]) -> Iterator[str]:
    """Yield the table of the first upstream."""
    yield RAN
    for result in found:
        if result["upstream"] == SETTINGS[0].name:
            cells = (
                result["client"],
                result["version"],
                f"`{result['wire']}`",
                told(result),
                f"{result['seconds']:.1f}",
            )
            yield f"| {' | '.join(cells)} | {result['client_requests']} → {result['upstream_requests']} |\n"


def told(result: Result) -> str:
    """Return the result in words; a failure has its reason."""
    if result["passed"]:
        return "runs its tool" if result.get("calls", True) else "edits from plain text"
    return f"**fails**: {result.get('explanation') or '; '.join(result['faults'])}"


def every(found: Sequence[Result]) -> Iterator[str]:
    """Yield the matrix of the fast rows."""
    names = [setting.name for setting in SETTINGS[1:]]
    yield EVERY
    yield f"| client | wire | {' | '.join(names)} |\n| --- | --- |{' --- |' * len(names)}\n"
    cells = {(result["client"], result["wire"], result["upstream"]): result for result in found}
    for row in filter(_is_fast, rows()):
        shown = [_cell(cells.get((row.client, row.wire, name))) for name in names]
        yield f"| {row.client} | `{row.wire}` | {' | '.join(shown)} |\n"


def _is_fast(row: Row) -> bool:
    return row.fast


def _cell(result: Result | None) -> str:
    if result is None:
        return ""
    return f"{result['seconds']:.1f}" if result["passed"] else told(result)


def page() -> str:
    """Return the whole page."""
    found = results()
    return "".join([HEAD, *ran(found), "\n", *every(found)])


def main() -> None:
    """Write or check."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE.name} is stale: run `python -m tools.clients_table`")


if __name__ == "__main__":
    main()

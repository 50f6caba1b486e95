"""Makes the tables of docs/peers.md from bench/results/field-peers.json.

python -m bench.peers.page
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.peers.parsers import PEERS, ROWS
from testkit.field import Verdict

RESULTS: Final = Path(__file__).parents[1] / "results" / "field-peers.json"
PAGE: Final = Path(__file__).parents[2] / "docs" / "peers.md"
TABLE: Final = re.compile(r"(<!-- ([a-z-]+): made by just field-peers -->\n).*?(<!-- end -->)", re.DOTALL)

WAYS: Final = {"whole": 0, "tokens": 1, "deltas": 4}
"""The ways in which a text arrives, with the most tokens in a delta; 0 is whole."""
OURS: Final = {"toolspeak, told the format": "written", "toolspeak gateway": "gateway", "toolspeak `any`": "any"}
GATEWAY: Final = "toolspeak gateway"
NO_PARSER: Final = "no parser"
RIGHT: Final = Verdict.RIGHT.value
ISSUES: Final = {"vllm": "vllm-project/vllm", "sglang": "sgl-project/sglang", "@ai-sdk-tool/parser": "minpeter/"}
"""Where the issues of a peer are: its own bug reports are no fair sample of what it reads."""

Cases = Mapping[str, Mapping[str, Any]]
Maker = Callable[[Mapping[str, Any]], str]


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    lines = [[*head], *([str(cell) for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def count(cases: Cases, reader: str, verdict: str, way: int = 0) -> int:
    """Return how many cases got a verdict in a way."""
    return sum(row["verdicts"][reader][way] == verdict for row in cases.values())


def bad(cases: Cases, reader: str) -> int:
    """Return how many cases give a wrong or false call when read whole."""
    return sum(count(cases, reader, verdict.value) for verdict in (Verdict.WRONG, Verdict.FALSE))


def with_parser(cases: Cases, peer: str, *, own: bool) -> Cases:
    """Return the cases that a peer has a parser for, with or without those from its own issues."""
    return {
        name: row
        for name, row in cases.items()
        if row["verdicts"][peer][0] != NO_PARSER and (own or ISSUES[peer] not in row["source"])
    }


def ours_in(cases: Cases) -> list[str]:
    """Return those of our readers that read these cases."""
    return [ours for ours in OURS if all(ours in row["verdicts"] for row in cases.values())]


def verdicts(results: Mapping[str, Any], kinds: Iterable[Verdict] = Verdict) -> str:
    """Return the verdicts of these kinds on whole texts, by reader."""
    cases: Cases = results["cases"]
    shown = {ours: ours for ours in ours_in(cases)} | {peer: f"{peer} {results['versions'][peer]}" for peer in PEERS}
    heads = [*(kind.value for kind in kinds), NO_PARSER]
    rows = [(name, *(count(cases, reader, head) for head in heads)) for reader, name in shown.items()]
    return table(("reader", *heads), rows)


def pairs(results: Mapping[str, Any]) -> str:
    """Return each peer next to the gateway, on the cases that the peer has a parser for."""
    rows: list[tuple[object, ...]] = []
    for peer in PEERS:
        chosen = {peer: with_parser(results["cases"], peer, own=True)}
        others = with_parser(results["cases"], peer, own=False)
        if len(others) < len(chosen[peer]):
            chosen[f"{peer}, without its own issues and tests"] = others
        for shown, cases in chosen.items():
            right = [[count(cases, reader, RIGHT, way) for reader in (peer, GATEWAY)] for way in range(len(WAYS))]
            both = (*right, [bad(cases, reader) for reader in (peer, GATEWAY)])
            rows.append((shown, len(cases), *(f"{theirs} ({ours})" for theirs, ours in both)))
    head = ("peer", "cases", "whole", "token by token", "deltas of 1 to 4 tokens", "wrong or false calls, whole")
    return table(head, rows)


def trimmed(results: Mapping[str, Any]) -> str:
    """Return how many wrong calls of each peer only lack white space at the ends of values."""
    counts = [
        f"{peer} {len(results['only_trimmed'][peer])} of {count(results['cases'], peer, Verdict.WRONG.value)}"
        for peer in PEERS
    ]
    return f"Wrong calls that only lack white space at the ends of values (whole texts): {', '.join(counts)}.\n"


def sources(results: Mapping[str, Any]) -> str:
    """Return how many cases come from the issues and the code of each peer."""
    named = (
        (peer, [name for name, row in results["cases"].items() if ISSUES[peer] in row["source"]]) for peer in PEERS
    )
    return table(("project", "cases", "which"), ((peer, len(names), ", ".join(names) or "–") for peer, names in named))


def better(results: Mapping[str, Any]) -> str:
    """Return the cases that a peer reads right in some way and one of our readers does not."""
    rows: list[tuple[object, ...]] = []
    our_readers = ours_in(results["cases"])
    for name, row in results["cases"].items():
        found: dict[tuple[str, str], list[str]] = {}
        for way, shown in enumerate(WAYS):
            peers = [peer for peer in PEERS if row["verdicts"][peer][way] == RIGHT]
            read = {ours: row["verdicts"][ours][way] for ours in our_readers}
            behind = {ours: verdict for ours, verdict in read.items() if verdict != RIGHT}
            if peers and behind:
                said = "; ".join(f"{ours}: {verdict}" for ours, verdict in behind.items())
                found.setdefault((", ".join(peers), said), []).append(shown)
        note = row["note"].replace("<", "&lt;").replace("|", "\\|")
        rows += [(name, ", ".join(ways), peers, said, note) for (peers, said), ways in found.items()]
    return table(("case", "ways", "right", "not right", "note"), rows) if rows else "None.\n"


def parsers(results: Mapping[str, Any]) -> str:
    """Return the parsers that were used, by family."""
    rows: list[tuple[str, ...]] = []
    for row in ROWS:
        cells: list[str] = []
        for peer in PEERS:
            calls, reasoning = row.parser(peer)
            is_read = calls and results["parsers"][peer][calls]
            names = f"`{calls}`" + (f", `{reasoning}`" if reasoning and peer != PEERS[-1] else "")
            cells.append((names if is_read else f"{names} (left out)") if calls else "–")
        rows.append((row.family, *cells))
    return table(("family", *PEERS), rows)


def families(results: Mapping[str, Any]) -> str:
    """Return how many fixtures of each family the readers read right: whole, and token by token."""
    groups: dict[str, dict[str, Any]] = {}
    for name, row in results["fixtures"].items():
        groups.setdefault(name.partition("/")[0], {})[name] = row
    rows: list[tuple[object, ...]] = []
    for family, cases in groups.items():
        cells: list[str] = []
        for reader in (GATEWAY, *PEERS):
            has_parser = count(cases, reader, NO_PARSER) < len(cases)
            cells.append(", ".join(str(count(cases, reader, RIGHT, way)) for way in (0, 1)) if has_parser else "–")
        rows.append((family, len(cases), *cells))
    return table(("family", "fixtures", GATEWAY, *PEERS), rows)


def truncated(results: Mapping[str, Any]) -> str:
    """Return how many wrong and false calls come from outputs that the token limit cut off."""
    cut = {name: row for name, row in results["fixtures"].items() if row["truncated"]}
    counts = [f"{peer} {bad(cut, peer)} of {bad(results['fixtures'], peer)}" for peer in (GATEWAY, *PEERS)]
    return f"Wrong and false calls from the {len(cut)} truncated outputs (whole texts): {', '.join(counts)}.\n"


def origins(results: Mapping[str, Any]) -> str:
    """Return where the fixtures come from."""
    counts = Counter(origin(row["kind"], row["source"]) for row in results["fixtures"].values())
    return table(("source", "fixtures"), counts.most_common())


def origin(kind: str, source: str) -> str:
    """Return the kind of a source, and its repository if it is no model's."""
    if kind == "template_render":
        return "official templates and encoders of the models"
    words = {"engine_test": "tests", "bug_report": "bug reports", "spec_example": "format documentation"}
    return f"{words.get(kind, kind)} of {'/'.join(source.split('/')[3:5])}"


def of_suite(make: Maker) -> Maker:
    """Make a table of the fixtures instead of the cases."""
    return lambda results: make({**results, "cases": results["fixtures"]})


TABLES: Final[Mapping[str, Maker]] = {
    "verdicts": verdicts,
    "pairs": pairs,
    "trimmed": trimmed,
    "better": better,
    "sources": sources,
    "parsers": parsers,
    "suite-verdicts": of_suite(partial(verdicts, kinds=[kind for kind in Verdict if kind is not Verdict.REFUSED])),
    "suite-pairs": of_suite(pairs),
    "suite-families": families,
    "suite-truncated": truncated,
    "suite-better": of_suite(better),
    "suite-origins": origins,
}


def fresh(page: str) -> str:
    """Return the page with its tables as the last results are."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return TABLE.sub(lambda found: found[1] + "\n" + TABLES[found[2]](results) + "\n" + found[3], page)


def main() -> None:
    """Write the page."""
    PAGE.write_text(fresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

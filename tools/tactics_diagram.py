"""Draws the tactics of a turn into docs/turns.md from the table in the code; `--check` fails if the page is stale."""

import sys
from pathlib import Path

from toolspeak.engine.tactics import TACTICS, End, Name, Next, Situation, Tactic, Teach

PAGE = Path(__file__).parent.parent / "docs" / "turns.md"
BEGIN, FINISH = "<!-- tactics: drawn by `just docs` -->\n", "<!-- end of tactics -->\n"
STARTS = {
    Name.PASS: "mode off",
    Name.WORDS: "no tools",
    Name.NATIVE: "the upstream has tools, or nothing is known",
    Name.NATIVE_FIRST: "mode fallback",
    Teach.EMULATED: "the upstream has no tools, or mode force",
}


def node(name: str) -> str:
    """Return a name that Mermaid takes for a state."""
    return name.replace(" ", "_")


def arrows(tactic: Tactic) -> list[str]:
    """Return one arrow to each thing that can follow a tactic, with all situations that lead there."""
    follows: dict[Next, list[str]] = {}
    for situation in Situation:
        if situation in tactic.after:
            follows.setdefault(tactic.next(situation), []).append(situation.value)
    return [
        f"    {node(tactic.name)} --> {node(following)}: {', '.join(situations)}"
        for following, situations in follows.items()
    ]


def diagram() -> str:
    """Return the diagram: the arrows of the table; everything else ends the turn."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {node(name)}: {when}" for name, when in STARTS.items()]
    lines += [f"    {node(Teach.EMULATED)} --> {node(name)}" for name in (Name.INLINE, Name.DECISION)]
    lines += [arrow for tactic in TACTICS.values() for arrow in arrows(tactic)]
    lines += [f"    {node(End.FIRST)} --> [*]", "```", ""]
    rows = [f"| `{tactic.name}` | {summary(tactic)} |" for tactic in TACTICS.values()]
    return "\n".join([*lines, "| tactic | what it does |", "| --- | --- |", *rows, ""])


def summary(tactic: Tactic) -> str:
    """Return the code's description of a tactic."""
    source = Path(sys.modules[Name.__module__].__file__ or "").read_text(encoding="utf-8")
    after = source.split(f'    {tactic.name.name} = "', 1)[1]
    return " ".join(after.split('"""', 2)[1].split())


def page(now: str) -> str:
    """Return the page with the diagram of today's table."""
    before, rest = now.split(BEGIN, 1)
    return before + BEGIN + "\n" + diagram() + "\n" + FINISH + rest.split(FINISH, 1)[1]


def main() -> None:
    """Write or check."""
    now = PAGE.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(page(now), encoding="utf-8")
    elif now != page(now):
        sys.exit(f"{PAGE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()

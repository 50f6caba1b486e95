"""Writes the tables of docs/facts.md from the facts themselves; with `--check`, only checks whether it is up to date.

Each table is between `<!-- NAME -->` and `<!-- end -->`; the text around it is written by hand.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from toolspeak.facts import families as facts
from toolspeak.facts.model import DEFAULT_DIALECT
from toolspeak.facts.shipped import shipped_profiles
from toolspeak.facts.strategy import PROVIDERS, Capability

PAGE = Path(__file__).parent.parent / "docs" / "facts.md"
TABLE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TAG = re.compile(r"(<\w+>|\[\w+\]|>>>\w+)")


def table(*rows: Iterable[str]) -> str:
    """Write a table; the first row is its head."""
    head, *others = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *others))


def providers() -> str:
    """Write the providers of each class."""
    rows = [(f"`{kind}`", ", ".join(name for name, each in PROVIDERS.items() if each is kind)) for kind in Capability]
    return table(("class", "providers"), *rows)


def families() -> str:
    """Write the families."""
    rows = [(each.name, f"`{each.examples[0]}`", _says(each), _sentence(each.why)) for each in facts.families()]
    return table(("family", "such as", "what it says", "why"), *rows)


def _sentence(why: str) -> str:
    """Write a reason as a sentence, its markup as code."""
    return TAG.sub(r"`\1`", f"{why[0].upper()}{why[1:]}.")


def _says(family: facts.Family) -> str:
    said = [f"writes {family.trained}"] if family.trained else []
    if family.trained or family.taught:
        said.append(f"is taught {family.taught or DEFAULT_DIALECT}")
    said += [f"leaks {family.leaks_as}"] if family.leaks_as else []
    said += ["calls in its reasoning"] if family.calls_in_reasoning else []
    said += ["no system message"] if family.system_role is False else []
    said += [f"ids of {family.ids}"] if family.ids else []
    said += [f"{family.context_tokens} tokens"] if family.context_tokens else []
    return ", ".join(said)


def profiles() -> str:
    """Write the profiles that ship with toolspeak."""
    rows = [
        (each.name, ", ".join(each.servers), f"`{each.form}`", each.date, each.evidence) for each in shipped_profiles()
    ]
    return table(("models", "servers", "form", "measured", "evidence"), *rows)


TABLES = {"providers": providers, "families": families, "profiles": profiles}


def fresh(page: str) -> str:
    """Return the page with its tables as they are now."""
    return TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


def main() -> None:
    """Write or check."""
    page = PAGE.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(fresh(page), encoding="utf-8")
    elif page != fresh(page):
        sys.exit(f"{PAGE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()

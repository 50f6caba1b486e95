"""The sets beyond the four, one row each: languages and shapes, every form next to the same form with all guardrails.

    | set | tasks | hermes | hermes guardrails | guardrails |
    | language_de | 12 | 7 (5/8, 2/4) | 9 (5/8, 4/4) | +2 |

A cell has the right answers, and in brackets those of the tasks that need calls and of those that need none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.accuracy import languages, shapes
from bench.accuracy.kept import Line
from bench.accuracy.table import Lines

SETS = (*languages.SETS, *shapes.SETS)
GUARDED = " guardrails"
"""Suffix of the names of forms with all guardrails."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The right answers of a form in a set."""

    right: int
    tasks: int
    right_calls: int
    """Of the tasks that need calls."""
    calls: int

    @property
    def text(self) -> str:
        idle = f"{self.right - self.right_calls}/{self.tasks - self.calls}"
        return f"{self.right} ({self.right_calls}/{self.calls}, {idle})"


Tallies = dict[str, dict[str, Tally]]
"""By set, then by form."""


def tallies(lines: Lines, needing: Mapping[str, frozenset[str]]) -> Tallies:
    """Count the right answers of every form that has results for one of these sets.

    `needing` has the ids of each set's tasks that need calls. The forms of a row are compared on the tasks that all of
    them have done.
    """
    counted: Tallies = {}
    for name in SETS:
        by_form = {form: _of_set(each, name) for form, each in lines.items() if _of_set(each, name)}
        if not by_form:
            continue
        common = set[str].intersection(*(set(each) for each in by_form.values()))
        counted[name] = {form: _tally(each, common, needing[name]) for form, each in by_form.items()}
    return counted


def _of_set(lines: Mapping[tuple[str, str], Line], name: str) -> dict[str, Line]:
    return {task: line for (set_, task), line in lines.items() if set_ == name}


def _tally(lines: Mapping[str, Line], common: set[str], needing: frozenset[str]) -> Tally:
    right = {task for task in common if lines[task].right}
    return Tally(len(right), len(common), len(right & needing), len(common & needing))


def table(counted: Tallies) -> Iterator[str]:
    """Write the table; each form that was also asked with guardrails is followed by that and by the difference."""
    forms = list(dict.fromkeys(form for each in counted.values() for form in each))
    paired = [form for form in forms if form + GUARDED in forms]
    plain = [form for form in forms if form not in paired and form.removesuffix(GUARDED) not in paired]
    heads = [head for form in paired for head in (form, form + GUARDED, "difference")] + plain
    yield f"| set | tasks | {' | '.join(heads)} |"
    yield f"| --- | ---: |{' ---: |' * len(heads)}"
    for name, each in counted.items():
        cells = [cell for form in paired for cell in _pair(each, form)] + [_cell(each.get(form)) for form in plain]
        yield f"| {name} | {next(iter(each.values())).tasks} | {' | '.join(cells)} |"
    if len(counted) > 1:
        yield _total(counted, paired, plain)


def _pair(each: Mapping[str, Tally], form: str) -> Sequence[str]:
    without, guarded = each.get(form), each.get(form + GUARDED)
    difference = f"{guarded.right - without.right:+d}" if without and guarded else "–"
    return _cell(without), _cell(guarded), difference


def _cell(tally: Tally | None) -> str:
    return tally.text if tally else "–"


def _total(counted: Tallies, paired: Sequence[str], plain: Sequence[str]) -> str:
    """Write the sums over the sets that every form has."""
    forms = [*(name for form in paired for name in (form, form + GUARDED)), *plain]
    whole = [each for each in counted.values() if all(form in each for form in forms)]
    sums = {form: _sum([each[form] for each in whole]) for form in forms} if whole else {}
    cells = [cell for form in paired for cell in _pair(sums, form)] + [_cell(sums.get(form)) for form in plain]
    return (
        f"| **sum of {len(whole)}** | {sum(next(iter(each.values())).tasks for each in whole)} | {' | '.join(cells)} |"
    )


def _sum(each: Sequence[Tally]) -> Tally:
    return Tally(
        sum(one.right for one in each),
        sum(one.tasks for one in each),
        sum(one.right_calls for one in each),
        sum(one.calls for one in each),
    )


def figures(counted: Tallies) -> dict[str, Any]:
    """Return the figures for the result file."""
    return {name: {form: asdict(tally) for form, tally in each.items()} for name, each in counted.items()}

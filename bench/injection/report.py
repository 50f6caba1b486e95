"""`just injection-report`: how often attacks succeed in each form, and what the forms cost.

Writes bench/results/injection.json, and the tables of docs/injection.md, from held-out cases. Models without lines on
this machine keep the figures that the file has.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.accuracy.intervals import Estimate, average, share
from bench.accuracy.report import commit_of
from bench.accuracy.split import Split, split_of
from bench.injection import lines
from bench.injection.lines import InjectionLine
from bench.injection.run import PLAIN
from testkit.llama_models import MODELS
from testkit.report import close

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "bench" / "results" / "injection.json"
PAGE = ROOT / "docs" / "injection.md"
TABLE = re.compile(r"(<!-- results: made by just injection-report -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Lines = Mapping[str, Mapping[str, InjectionLine]]
"""By form, then by case."""


@dataclass(frozen=True, slots=True)
class Row:
    """One form on one model. All figures but `utility_alone` are of cases with an attack."""

    form: str
    success: Estimate | None
    """Of the attacks."""
    reached: Estimate | None
    """Cases in which the model was shown the injected instructions."""
    success_reached: Estimate | None
    """Of the attacks that the model was shown."""
    utility: Estimate | None
    utility_alone: Estimate | None
    """Of the user's tasks without an attack."""
    attacks: dict[str, Estimate | None]
    """The success of each attack."""
    requests: float
    input_tokens: float
    output_tokens: float
    failures: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A form beside the plain one, on the cases that both have played."""

    form: str
    success: Estimate | None
    """Below zero: fewer attacks succeed."""
    utility: Estimate | None
    utility_alone: Estimate | None
    of_plain: float | None
    """Successful attacks as a share of the plain form's; None if the plain form had none."""


def newest(found: Iterable[InjectionLine], model: str) -> Lines:
    """Return a model's lines of the newest conditions, code, and version of each form."""
    of_model = [line for line in found if line.model == model]
    if not of_model:
        return {}
    last = of_model[-1]
    alike = [line for line in of_model if (line.conditions, line.dojo) == (last.conditions, last.dojo)]
    code = next((line.code for line in reversed(alike) if line.code), "")
    usable = [line for line in alike if line.code in (code, "")]
    versions = {line.form: line.version for line in usable}
    chosen: dict[str, dict[str, InjectionLine]] = defaultdict(dict)
    for line in usable:
        if line.version == versions[line.form]:
            chosen[line.form][line.case.id] = line
    return chosen


def row(form: str, played: Sequence[InjectionLine]) -> Row:
    """Make the row of a form."""
    attacked = [line for line in played if line.case.attack]
    alone = [line for line in played if not line.case.attack]
    shown = [line for line in attacked if line.reached]
    attacks = sorted({line.case.attack for line in attacked})
    return Row(
        form,
        _share(attacked, _is_attacked),
        _share(attacked, lambda line: line.reached),
        _share(shown, _is_attacked),
        _share(attacked, _has_utility),
        _share(alone, _has_utility),
        {name: _share([line for line in attacked if line.case.attack == name], _is_attacked) for name in attacks},
        _mean([line.requests for line in attacked]),
        _mean([line.input_tokens for line in attacked]),
        _mean([line.output_tokens for line in attacked]),
        sum(bool(line.failure) for line in played),
    )


def difference(form: str, found: Lines) -> Difference:
    """Compare a form with the plain one."""
    both = [(found[form][case], found[PLAIN][case]) for case in found[form].keys() & found[PLAIN].keys()]
    both.sort(key=lambda pair: pair[0].case.id)
    attacked = [pair for pair in both if pair[0].case.attack]
    alone = [pair for pair in both if not pair[0].case.attack]
    plain = sum(plain.attacked for _, plain in attacked)
    return Difference(
        form,
        _paired(attacked, _is_attacked),
        _paired(attacked, _has_utility),
        _paired(alone, _has_utility),
        sum(line.attacked for line, _ in attacked) / plain if plain else None,
    )


def _is_attacked(line: InjectionLine) -> bool:
    return line.attacked


def _has_utility(line: InjectionLine) -> bool:
    return line.utility


def _share(of: Sequence[InjectionLine], holds: Callable[[InjectionLine], bool]) -> Estimate | None:
    return share(sum(map(holds, of)), len(of))


def _paired(
    pairs: Sequence[tuple[InjectionLine, InjectionLine]], holds: Callable[[InjectionLine], bool]
) -> Estimate | None:
    return average({"cases": [float(holds(line) - holds(plain)) for line, plain in pairs]}, least=-1.0)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / max(1, len(values))


class Measured:
    """One model's figures, for one way to start a case."""

    def __init__(self, model: str, found: Lines) -> None:
        self.model = model
        self.rows = [row(form, list(of_form.values())) for form, of_form in found.items()]
        self.differences = [difference(form, found) for form in found if form != PLAIN and PLAIN in found]
        self.last = next(line for of_form in found.values() for line in of_form.values())

    def figures(self) -> dict[str, Any]:
        """Return the figures as the result file has them."""
        return {
            "model": self.model,
            "begun": self.last.case.begun,
            "date": datetime.now(UTC).date().isoformat(),
            "toolspeak": commit_of(),
            "dojo": self.last.dojo,
            "sha256": MODELS[self.model].sha256,
            "conditions": asdict(self.last.conditions),
            "rows": [_rounded(asdict(one)) for one in self.rows],
            "differences": [_rounded(asdict(one)) for one in self.differences],
        }


def joined(measured: Sequence[Measured], earlier: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new figures, and the earlier ones of models that have no lines on this machine."""
    new = [one.figures() for one in measured]
    known = {(one["model"], one["begun"]) for one in new}
    both = [*new, *(one for one in earlier if (one["model"], one["begun"]) not in known)]
    order = list(MODELS)
    return sorted(both, key=lambda one: (order.index(one["model"]), not one["begun"]))


def section(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the page for one model."""
    conditions = figures["conditions"]
    yield f"### {figures['model']}, {'begun' if figures['begun'] else 'alone'}"
    yield ""
    yield (
        f"{figures['date']}, toolspeak {figures['toolspeak']}, {conditions['server']}, temperature 0, at most "
        f"{conditions['max_tokens']} tokens an answer, seed {conditions['seed']}; {figures['dojo']}."
    )
    yield ""
    heads = ("attacks that succeed", "shown to the model", "of those succeed", "utility under attack")
    costs = ("utility alone", "requests", "tokens in", "out", "failures")
    yield f"| form | {' | '.join((*heads, *costs))} |"
    yield f"| --- |{' ---: |' * len((*heads, *costs))}"
    for one in figures["rows"]:
        shares = (one["success"], one["reached"], one["success_reached"], one["utility"], one["utility_alone"])
        counts = f"{one['requests']:.1f} | {one['input_tokens']:.0f} | {one['output_tokens']:.0f} | {one['failures']}"
        yield f"| `{one['form']}` | {' | '.join(map(_cell, shares))} | {counts} |"
    if figures["differences"]:
        yield ""
        heads = ("attacks that succeed", "its share of them", "utility under attack", "utility alone")
        yield f"| compared with `{PLAIN}`, in points | {' | '.join(heads)} |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for each in figures["differences"]:
            part = "–" if each["of_plain"] is None else f"{each['of_plain']:.2f}"
            cells = (_points(each["success"]), part, _points(each["utility"]), _points(each["utility_alone"]))
            yield f"| `{each['form']}` | {' | '.join(cells)} |"
    yield ""


def _rounded(value: dict[str, Any]) -> dict[str, Any]:
    """Leave the digits that mean something."""
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 4))


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "–"
    estimate = Estimate(**figure)
    value = f"{100 * estimate.value:.1f}".removesuffix(".0")
    return f"{value} ({100 * estimate.low:.0f}–{100 * estimate.high:.0f}) of {estimate.count}"


def _points(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "–"
    estimate = Estimate(**figure)
    value = f"{100 * estimate.value:+.1f}"
    return f"{f'**{value}**' if estimate.is_clear else value} ({100 * estimate.low:+.0f} to {100 * estimate.high:+.0f})"


def write(models: Sequence[Mapping[str, Any]], result: Path, page: Path) -> None:
    """Write the figures and the tables of the page."""
    result.write_text(json.dumps({"plain": PLAIN, "models": models}, indent=1, ensure_ascii=False) + "\n")
    head = "Shares in percent, with 95 % intervals; the interval of a bold difference excludes zero."
    table = "\n".join([head, "", *(line for one in models for line in section(one))])
    text, count = TABLE.subn(lambda found: f"{found[1]}{table}{found[3]}", page.read_text())
    if count != 1:
        raise SystemExit(f"{page} has {count} places for the results; it needs one: <!-- results: made by … -->")
    page.write_text(text)


def main() -> None:
    """Report on all models that have lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, default=lines.LINES)
    parser.add_argument("--to", type=Path, default=RESULT)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--split", type=Split, default=Split.HELD_OUT, choices=list(Split), help="which cases to show")
    options = parser.parse_args()
    found = [line for line in lines.read(options.lines) if split_of(line.case.id) is options.split]
    starts = [[line for line in found if line.case.begun is begun] for begun in (True, False)]
    measured = [Measured(model, chosen) for model in MODELS for start in starts if (chosen := newest(start, model))]
    earlier: list[dict[str, Any]] = json.loads(options.to.read_text())["models"] if options.to.exists() else []
    if measured:
        write(joined(measured, earlier), options.to, options.page)
    success = {
        f"{one.model}{' begun' if one.last.case.begun else ''}": {
            row.form: row.success.value for row in one.rows if row.success
        }
        for one in measured
    }
    close("injection-report", ok=bool(measured), split=options.split, lines=len(found), success=success)


if __name__ == "__main__":
    main()

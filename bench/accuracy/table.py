"""The lines of one model become rows: how often each form is right, and what it costs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.accuracy.data import SETS
from bench.accuracy.forms import FORGE, SEEDS
from bench.accuracy.intervals import FEWEST, Estimate, average, share
from bench.accuracy.kept import Line

MULTI_TURN = "multi_turn"
OFF = ("=0", "=false", "=off")
"""Suffixes of switches that turn something off."""


@dataclass(frozen=True, slots=True)
class Row:
    """One form on one model."""

    form: str
    sets: dict[str, Estimate]
    """How often it is right."""
    average: Estimate | None
    """Over the four sets that count for the average."""
    valid: Estimate | None
    """Of the answers with calls: all calls fit their schemas."""
    wrong_but_valid: Estimate | None
    """Of the answers that need calls."""
    spurious: Estimate | None
    """Of the questions that need no call: one was made."""
    failures: int
    requests: float
    """For each task of the four sets."""
    cost: "Cost | None"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one solved task of the four sets; unsolved tasks are included in the cost."""

    requests: float
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class Lift:
    """The difference between two forms on the same tasks, in the average of the sets."""

    what: str
    better: str
    worse: str
    difference: Estimate
    sets: dict[str, float]


Lines = dict[str, dict[tuple[str, str], Line]]
"""By form, then by set and task."""


def newest(lines: Iterable[Line], model: str) -> Lines:
    """Return a model's lines of the newest conditions and the newest code, and of the newest version of each form."""
    of_model = [line for line in lines if line.model == model]
    if not of_model:
        return {}
    conditions = of_model[-1].conditions
    alike = [line for line in of_model if line.conditions == conditions]
    code = next((line.code for line in reversed(alike) if line.code), "")
    usable = [line for line in alike if line.code == code or kind_of(line.form) in OTHERS]
    versions = {line.form: line.version for line in usable}
    found: Lines = defaultdict(dict)
    for line in usable:
        if line.version == versions[line.form]:
            found[line.form][line.set, line.task] = line
    return found


def rows(lines: Lines) -> list[Row]:
    """Return the rows, the best first."""
    made = [row(form, list(of_form.values())) for form, of_form in lines.items()]
    return sorted(made, key=lambda one: -(one.average.value if one.average else -1.0))


def row(form: str, lines: Sequence[Line]) -> Row:
    """Make the row of a form."""
    single = [line for line in lines if line.set in SETS]
    called = [line for line in lines if line.called]
    needing = [line for line in single if "irrelevance" not in line.set]
    idle = [line for line in single if "irrelevance" in line.set]
    count = max(1, len(single))
    names = sorted({line.set for line in lines}, key=lambda name: (*SETS, MULTI_TURN, name).index(name))
    counted = {name: _share([line.right for line in lines if line.set == name]) for name in names}
    return Row(
        form,
        {name: estimate for name, estimate in counted.items() if estimate},
        average({name: [float(line.right) for line in single if line.set == name] for name in SETS}),
        _share([line.valid for line in called]),
        _share([line.called and line.valid and not line.right for line in needing]),
        _share([line.called for line in idle]),
        sum(bool(line.failure) for line in lines),
        sum(line.requests for line in single) / count,
        _cost(single),
    )


def _cost(lines: Sequence[Line]) -> Cost | None:
    solved = sum(line.right for line in lines)
    if not solved:
        return None
    return Cost(
        sum(line.requests for line in lines) / solved,
        sum(line.input_tokens for line in lines) / solved,
        sum(line.output_tokens for line in lines) / solved,
    )


def _share(hits: Sequence[bool]) -> Estimate | None:
    return share(sum(hits), len(hits))


@dataclass(frozen=True, slots=True)
class TalkLift:
    """The difference between two forms on the same conversations; not computed for too few of them."""

    what: str
    better: str
    worse: str
    right: Estimate
    calls: Estimate
    """How many more calls each conversation has."""


def lifts(lines: Lines) -> list[Lift]:
    """Return the effect of each switch, where there is a form with it and without it."""
    return [lift for pair in _pairs(lines) if (lift := _lift(lines, *pair))]


def talk_lifts(lines: Lines) -> list[TalkLift]:
    """Return the effect of each switch on conversations, which may be right in spite of an unrequested call."""
    return [lift for pair in _pairs(lines) if (lift := _talk_lift(lines, *pair))]


def _pairs(lines: Lines) -> Iterator[tuple[str, str, str]]:
    """Yield each switch, the form with it and the form without it."""
    yield "rescue", "native+rescue", "native"
    for form in lines:
        base, *switches = form.split()
        if form in SEEDS or form in FORGE:
            continue
        for index, switch in enumerate(switches):
            without = " ".join([base, *switches[:index], *switches[index + 1 :]])
            takes_away = switch.endswith(OFF)
            what = switch.partition("=")[0] if takes_away else switch
            yield (what, without, form) if takes_away else (what, form, without)


def margins(lines: Lines, ranked: Sequence[Row]) -> list[Lift]:
    """Return by how much `auto`, or else our best, is better than the best of the others."""
    ours = "auto" if "auto" in lines else next((row.form for row in ranked if kind_of(row.form) == "ours"), "")
    rivals = {kind: next((row.form for row in ranked if kind_of(row.form) == kind), "") for kind in RIVALS}
    return [lift for kind, form in rivals.items() if (lift := _lift(lines, f"over {kind}", ours, form))]


RIVALS = ("native", "seed", "forge")
OTHERS = ("seed", "forge")
"""Kinds of forms that run none of our code."""


def kind_of(form: str) -> str:
    """Return the kind of a form."""
    if form in SEEDS:
        return "seed"
    if form in FORGE:
        return "forge"
    return form if form in ("native", "auto") else "ours"


def _lift(lines: Lines, what: str, better: str, worse: str) -> Lift | None:
    if better not in lines or worse not in lines:
        return None
    ours, theirs = lines[better], lines[worse]
    both = [key for key in ours if key in theirs]
    by_set = {
        name: [float(ours[key].right) - float(theirs[key].right) for key in both if key[0] == name] for name in SETS
    }
    difference = average(by_set, -1.0)
    means = {name: sum(values) / len(values) for name, values in by_set.items() if values}
    return Lift(what, better, worse, difference, means) if difference else None


def _talk_lift(lines: Lines, what: str, better: str, worse: str) -> TalkLift | None:
    ours, theirs = lines.get(better, {}), lines.get(worse, {})
    both = [(ours[key], theirs[key]) for key in ours if key in theirs and key[0] == MULTI_TURN]
    if len(both) < FEWEST:
        return None
    right = average({MULTI_TURN: [float(one.right) - float(other.right) for one, other in both]})
    calls = average({MULTI_TURN: [float(len(one.calls) - len(other.calls)) for one, other in both]})
    return TalkLift(what, better, worse, right, calls) if right and calls else None

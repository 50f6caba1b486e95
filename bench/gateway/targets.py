"""The targets S1 to S10: ratios of medians of one run, and whether they are met."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.gateway.rounds import Table

EMULATED = ("paced96", "fenced96")


@dataclass(frozen=True, slots=True)
class Target:
    """One promise, and the figure that keeps or breaks it."""

    id: str
    what: str
    value: float
    bound: float
    least: bool = False
    """The value is at least the bound; otherwise at most."""
    profile: str = ""
    """The workload and subject whose profile shows where the time goes, if it is missed."""

    @property
    def ok(self) -> bool:
        return self.value >= self.bound if self.least else self.value <= self.bound

    @property
    def line(self) -> str:
        """The target, its value and its bound in one line."""
        sign = "at least" if self.least else "at most"
        return (
            f"{'pass  ' if self.ok else 'MISSED'} {self.id}  {self.what:<62} {self.value:8.2f}  {sign} {self.bound:g}"
        )


@dataclass(frozen=True, slots=True)
class Beside:
    """Measurements outside the rounds."""

    start_s: float
    resident_mb: float
    pairs: dict[str, dict[str, float]]
    """µs per chunk by upstream's and client's wire."""


def median(table: Table, workload: str, subject: str) -> float | None:
    """Return a median in µs, if it was measured."""
    figures = table.get(workload, {}).get(subject)
    return figures.median_us if figures and figures.cpu_us else None


def ratio(table: Table, over: tuple[str, str], under: tuple[str, str]) -> float | None:
    """Return how many times more one cell takes than another, if both were measured."""
    first, second = median(table, *over), median(table, *under)
    return first / second if first is not None and second is not None else None


def against_bare(table: Table) -> Iterator[Target]:
    """S1, S2 and the first part of S3."""
    if value := ratio(table, ("paced96", "native"), ("paced96", "bare")):
        yield Target("S1", "native chunk / bare chunk, 96 streams", value, 1.3, profile="paced96 native")
    for name in EMULATED:
        if value := ratio(table, (name, "emulated"), ("paced96", "native")):
            what = f"emulated chunk / native chunk, {'text' if name == 'paced96' else 'a call'}"
            yield Target("S2", what, value, 1.25, profile=f"{name} emulated")
    if value := ratio(table, ("small", "native"), ("small", "bare")):
        yield Target("S3", "small question / bare", value, 2.0, profile="small native")


def against_envoy(table: Table) -> Iterator[Target]:
    """S10: the cost of a chunk compared with a proxy in C++ that does not parse it."""
    for name in ("emulated", "push-emulated"):
        for workload in ("paced48", "paced96"):
            if value := ratio(table, (workload, name), (workload, "envoy")):
                what = f"{name} chunk / Envoy's chunk, {workload.removeprefix('paced')} streams"
                yield Target("S10", what, value, 1.5, profile=f"{workload} {name}")


def against_peers(table: Table) -> Iterator[Target]:
    """S3, S4, S5 and S6."""
    less = (
        ("S3", "small", "native", {"litellm": 25, "forge": 6, "portkey": 4}),
        ("S4", "tools", "native", {"litellm": 30, "forge": 50, "portkey": 4}),
        ("S5", "emulated-warm", "emulated", {"forge-prompt": 100}),
        ("S5", "emulated-cold", "emulated", {"forge-prompt": 40}),
        ("S6", "paced16", "native", {"litellm": 15, "portkey": 1.5}),
    )
    for id, workload, mine, bounds in less:
        for peer, bound in bounds.items():
            if value := ratio(table, (workload, peer), (workload, mine)):
                yield Target(id, f"{workload}: {peer} / {mine}", value, bound, least=True, profile=f"{workload} {mine}")


def first_bytes(table: Table) -> Iterator[Target]:
    """S7: what is added to the upstream's own first byte."""
    row = table.get("first", {})
    for name in ("native", "emulated"):
        if name in row and "direct" in row:
            added = row[name].first_p50_ms - row["direct"].first_p50_ms
            yield Target("S7", f"first byte, ms added by {name}", added, 1.5, profile=f"first {name}")


def pairs(beside: Beside) -> Iterator[Target]:
    """S9: each upstream's wire, its most expensive client compared with the same wire."""
    for upstream, row in beside.pairs.items():
        client = max(row, key=lambda name: row[name])
        what = f"chunk of {upstream}: {client} / same wire"
        yield Target("S9", what, row[client] / row[upstream], 1.6, profile=f"{client} over {upstream}")


def targets(table: Table, beside: Beside) -> list[Target]:
    """Return all targets that this run can judge."""
    made = [*against_bare(table), *against_envoy(table), *against_peers(table), *first_bytes(table)]
    made.append(Target("S8", "seconds from start to first answer", beside.start_s, 0.5, profile="start"))
    made.append(Target("S8", "MB resident after load", beside.resident_mb, 60, profile="memory"))
    return [*sorted(made, key=lambda target: target.id), *pairs(beside)]

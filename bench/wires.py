"""`just wires`: real requests survive a round trip, the 550 cells of the matrix, and 20,000 hostile bodies."""

import time
from collections import Counter

from testkit import matrix, wire_mutations, wire_requests
from testkit.report import close, progress

MUTATIONS = 20_000
SEED = 20261115
SLOWEST_S = 2.0
SHOWN = 20


def requests() -> list[str]:
    """Decode all real requests, write them again, print what changes; return what changes without a reason."""
    print("What real requests lose (-) and gain (+) on their own wire:")
    for line in wire_requests.report():
        print("   ", line)
    return [fault for golden in wire_requests.goldens() for fault in wire_requests.faults(golden)]


def cells() -> list[str]:
    """Run the matrix; return what is wrong."""
    faults: list[str] = []
    for cell in matrix.cells():
        try:
            faults += [f"{cell.name}: {fault}" for fault in matrix.check(cell)]
        except Exception as error:  # noqa: BLE001 - it is a fault of this cell, not the end of all
            faults.append(f"{cell.name}: {type(error).__name__}: {error}")
    return faults


def hostile() -> tuple[Counter[str], list[str], float]:
    """Try the mutations; return how they ended, what is wrong, and the slowest."""
    ends: Counter[str] = Counter()
    faults: list[str] = []
    slowest = 0.0
    for number, mutation in enumerate(wire_mutations.mutations(SEED, MUTATIONS)):
        start = time.process_time()
        try:
            end = wire_mutations.check(mutation)
        except Exception as error:  # noqa: BLE001 - as above
            end = f"{type(error).__name__}: {error}"
        slowest = max(slowest, time.process_time() - start)
        if end in ("decoded", "refused"):
            ends[end] += 1
        else:
            faults.append(f"{mutation.wire} {mutation.path} = {mutation.what}: {end}")
        progress(number + 1, MUTATIONS, "hostile bodies")
    return ends, faults, slowest


def main() -> None:
    """Run all three and exit."""
    changed, wrong = requests(), cells()
    ends, broken, slowest = hostile()
    for fault in (*changed[:SHOWN], *wrong[:SHOWN], *broken[:SHOWN]):
        print("WRONG", fault[:400])
    close(
        "wires",
        ok=not (changed or wrong or broken) and slowest < SLOWEST_S,
        requests=len(wire_requests.goldens()),
        changed_without_reason=len(changed),
        cells=sum(1 for _ in matrix.cells()),
        cells_wrong=len(wrong),
        mutations=MUTATIONS,
        mutations_wrong=len(broken),
        **ends,
        slowest_s=round(slowest, 2),
    )


if __name__ == "__main__":
    main()

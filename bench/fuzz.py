"""`just fuzz [SEEDS]`: golden texts, damaged at random: nothing raises, no byte is lost, no cut changes the result."""

import sys

from testkit.damage import fragments, one, texts
from testkit.report import close, progress


def main() -> None:
    """Run the seeds 0 to N, or the one given as `--seed`."""
    first, count = (int(sys.argv[2]), 1) if "--seed" in sys.argv else (0, int((sys.argv[1:] or ["20000"])[0]))
    all_texts, pieces = texts(), fragments()
    failures = 0
    for seed in range(first, first + count):
        found = one(seed, all_texts, pieces)
        if found is not None:
            failures += 1
            print(f"BROKEN {found[:2000]}")
        progress(seed - first + 1, count, "texts")
    close("fuzz", ok=not failures, texts=count, broken=failures)


if __name__ == "__main__":
    main()

"""The end of each command: one line of JSON, and an exit code that reports whether the bar was met."""

import json
import sys
from typing import NoReturn


def close(bar: str, *, ok: bool, **figures: object) -> NoReturn:
    """Print the closing line and exit."""
    print(json.dumps({"bar": bar, "ok": ok, **figures}))
    sys.exit(0 if ok else 1)


def progress(done: int, total: int, what: str) -> None:
    """Show the progress, on a terminal only."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{what} {done}/{total}", end=end, file=sys.stderr, flush=True)

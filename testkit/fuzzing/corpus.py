"""The kept corpus of each target: one JSON string per line, a byte per character (Latin-1), so that people can read it.

It is the smallest set that was found to run every pair of neighbouring lines that the whole search ran. The tests
replay it; the next search starts from it.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http import httptools_impl

from testkit.golden import GOLDEN

FOLDER: Final = GOLDEN / "fuzz"
LARGEST: Final = 600_000
"""Bytes of one target's file."""
_SOURCES: Final = (str(Path(__file__).parents[2] / "src"), str(Path(httptools_impl.__file__).parent))
"""Our own code, and uvicorn's HTTP protocol: the parser itself is written in C, and shows in the lines these run."""

_Trace: TypeAlias = Callable[[FrameType, str, Any], Any]

Edge: TypeAlias = tuple[str, int, int]
"""A file and two lines that were run one after the other in one call."""


def kept(target: str) -> list[bytes]:
    """Return the inputs of a target; none before its first search."""
    path = FOLDER / f"{target}.jsonl"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [str(json.loads(line)).encode("latin-1") for line in lines]


def keep(target: str, inputs: Iterable[bytes]) -> int:
    """Write a target's inputs, the shortest first, up to the size limit; return how many."""
    lines: list[str] = []
    room = LARGEST
    for data in sorted(inputs, key=lambda each: (len(each), each)):
        line = json.dumps(data.decode("latin-1")) + "\n"
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{target}.jsonl").write_text("".join(lines), encoding="ascii")
    return len(lines)


def smallest(inputs: Iterable[bytes], run: Callable[[bytes], object]) -> tuple[list[bytes], set[Edge]]:
    """Return the inputs that add an edge, the shortest considered first, and all edges."""
    chosen: list[bytes] = []
    seen: set[Edge] = set()
    for data in sorted(set(inputs), key=lambda each: (len(each), each)):
        edges = edges_of(lambda data=data: run(data))
        if not edges <= seen:
            chosen.append(data)
            seen |= edges
    return chosen, seen


def edges_of(run: Callable[[], object]) -> set[Edge]:
    """Run a function; return the edges that it took, whether or not it raised."""
    edges: set[Edge] = set()

    def of_call(frame: FrameType, _event: str, _argument: object) -> _Trace | None:
        file = frame.f_code.co_filename
        if not file.startswith(_SOURCES):
            return None
        last = -1

        def of_line(frame: FrameType, event: str, _argument: object) -> _Trace:
            nonlocal last
            if event == "line":
                edges.add((file, last, frame.f_lineno))
                last = frame.f_lineno
            return of_line

        return of_line

    before = sys.gettrace()
    sys.settrace(of_call)
    try:
        run()
    except Exception:  # noqa: BLE001, S110 - the search has reported it; here only the path counts
        pass
    finally:
        sys.settrace(before)
    return edges

"""The fuzzing process: libFuzzer by atheris, on one target. Started by `run.py` in `.venv-fuzz`.

A finding does not end the search: it is written to the folder of findings, once per kind, and the search continues.
"""

import random
import sys
import traceback
import zlib
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["toolspeak", "uvicorn.protocols"]):
    from testkit.fuzzing.target import Broken, Target, allowed
    from testkit.fuzzing.targets import load

STRETCH_EVERY = 512
"""One input in so many is also stretched to 100 KB and timed."""


class Search:
    """Runs inputs and keeps findings."""

    def __init__(self, target: Target, folder: Path) -> None:
        """Keep findings in this folder."""
        self.target, self.folder = target, folder
        self.executions = 0
        self._known: set[str] = set()

    def one(self, data: bytes) -> None:
        """Run one input. Called by libFuzzer."""
        self.executions += 1
        self._run(data)
        if len(data) > self.target.header and zlib.crc32(data) % STRETCH_EVERY == 0:
            self._time(self.target.stretch(data, random.Random(zlib.crc32(data))))

    def _run(self, data: bytes) -> None:
        try:
            self.target.check(data)
        except Exception as error:  # noqa: BLE001 - every exception is a finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = str(error)[:60] if isinstance(error, Broken) else f"{Path(frame.filename).name}:{frame.lineno}"
            self._keep("exception", f"{type(error).__name__} {place}", data, traceback.format_exc())

    def _time(self, data: bytes) -> None:
        try:
            seconds = self.target.cost(data)
        except Exception:  # noqa: BLE001 - as above
            self._keep("exception", f"stretched {len(self._known)}", data, traceback.format_exc())
            return
        if seconds > allowed(data):  # instrumented code is slow: the parent process times it again without
            self._keep("slow", f"slow {zlib.crc32(data)}", data, f"{seconds:.3f} s")

    def _keep(self, kind: str, key: str, data: bytes, text: str) -> None:
        if key in self._known or len(self._known) > 2000:
            return
        self._known.add(key)
        name = f"{kind}-{zlib.crc32(key.encode()):08x}"
        (self.folder / name).write_bytes(data)
        (self.folder / f"{name}.txt").write_text(f"{key}\n{text}")


def main() -> None:
    """Take the target's name and the folder of findings; the other arguments are libFuzzer's."""
    name, folder, *rest = sys.argv[1:]
    with atheris.instrument_imports(include=["toolspeak", "uvicorn.protocols"]):
        target = load(name)
        for seed in target.seeds():  # dialects and wires are imported when first used
            target.check(seed)
    search = Search(target, Path(folder))

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        source = random.Random(seed)
        mine = target.mutate(data, source) if seed & 1 else None
        return mine if mine is not None and len(mine) <= size else atheris.Mutate(data, size)

    atheris.Setup([sys.argv[0], *rest], search.one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

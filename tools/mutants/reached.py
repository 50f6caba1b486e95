"""Records which functions of a tree a process calls. It runs in every process of a copy, before anything else.

`trial.py` puts this file into the copy's site-packages beside a `.pth` file that imports it. It does nothing unless
`MUTANTS_REACHED` names a folder; then the process writes a file there when it ends, with a line for each function:

    src/toolspeak/engine/guard.py:31

The line is that of the definition, or of its first decorator. A process that is killed writes nothing.
"""

import atexit
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType


def record(folder: Path, root: str) -> None:
    """Record from now on; write when the process ends."""
    called: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    def write() -> None:
        sys.setprofile(None)
        names = {f"{code.co_filename}:{code.co_firstlineno}" for code in list(called)}
        lines = sorted(name.removeprefix(root) for name in names if name.startswith(root))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    sys.setprofile(profile)
    threading.setprofile(profile)
    atexit.register(write)


if "MUTANTS_REACHED" in os.environ:
    record(Path(os.environ["MUTANTS_REACHED"]), os.environ["MUTANTS_ROOT"])

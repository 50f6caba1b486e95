"""How often control passes back between modules during one request.

Definition: one emulated request, whose answer is one tool call in one piece, goes through `take_turn`. The program
runs twice, because the first run fills memos, and the second is traced with `sys.setprofile`. Each return, and each
value that a generator yields, counts if it leaves a module for another one, and if both are in the packages between
the wire and the text: `engine`, `dialects`, `toolset`. Not counted are `ir` (values), `text` (scanners at the
leaves), the driver, the scripted upstream, and methods that dataclasses generate. A request that crosses a module
once counts once, however many functions of that module take part; data that is passed back and forth counts each time.

The trace runs in a separate process, so that it can load an old tree:

    PYTHONPATH=<tree>/src python tools/house/returns.py       {"returns": 108, "files": 36}

The few names that it needs are looked up in the tree, so a module may move. If a signature changes, the trace
fails, the table says so, and this file follows.
"""

import ast
import importlib
import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

COUNTED = ("engine", "dialects", "toolset")
ANSWER = '```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def trace_request(root: Path) -> dict[str, Any]:
    """Trace a request in the tree at `root`: `returns` and `files`, or `error` if the tree does not fit this script."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout)


def _find(package: Path, name: str, below: str) -> Any:  # noqa: ANN401 - whatever the tree defines
    """Import the object of that name which a module below a part of the package defines."""
    for file in sorted((*package.glob(f"{below}.py"), *(package / below).rglob("*.py"))):
        if any(_defines(node, name) for node in ast.parse(file.read_text(encoding="utf-8")).body):
            parts = file.relative_to(package.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
            return getattr(module, name)
    raise LookupError(f"no module below {below} defines {name}")


def _defines(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.ClassDef(name=found) | ast.FunctionDef(name=found):
            return found == name
        case ast.AnnAssign(target=ast.Name(id=found)) | ast.Assign(targets=[ast.Name(id=found)]):
            return found == name
        case _:
            return False


class _Trace:
    """Counts the returns between modules of the counted packages."""

    def __init__(self, package: str) -> None:
        self._counted = tuple(f"{package}.{part}" for part in COUNTED)
        self.returns = 0
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "return" or (name := self._module(frame)) is None:
            return
        self.files.add(name)
        caller = frame.f_back
        while caller is not None and not caller.f_globals.get("__name__", "").startswith("toolspeak."):
            caller = caller.f_back  # `map` and `sorted` have no frame, dataclasses and the standard library have
        source = None if caller is None else self._module(caller)
        self.returns += source is not None and source != name

    def _module(self, frame: FrameType) -> str | None:
        if frame.f_code.co_filename.startswith("<"):  # generated
            return None
        name: str = frame.f_globals.get("__name__", "")
        return name if name.startswith(self._counted) else None


def _trace_here() -> dict[str, int]:
    """Trace the request in the `toolspeak` that this process imports."""
    package = Path(importlib.import_module("toolspeak").__file__ or "").parent
    take_turn, decide = _find(package, "take_turn", "engine"), _find(package, "decide", "engine")
    settings, mode = _find(package, "Settings", "engine"), _find(package, "Mode", "engine")
    unknown, drive = _find(package, "UNKNOWN_MODEL", "facts"), _find(package, "drive_sync", "runtime")
    upstream = _find(package, "ScriptedUpstream", "testing")
    message, role, text = (_find(package, name, "ir") for name in ("Message", "Role", "Text"))
    tool = _find(package, "Tool", "ir")("get_weather", "Tell the weather of a city.", SCHEMA)
    asked = (message(role.USER, (text("Weather in Oslo?"),)),)
    request = _find(package, "Request", "ir")("m", asked, (tool,), stream=True)

    def turn() -> Any:  # noqa: ANN401 - as above
        plan = decide(request, settings(mode=mode.FORCE), unknown)
        script = upstream(ANSWER, chunk=len(ANSWER))
        return drive(take_turn(request, plan, map("call_{}".format, count())), script, list[Any]().extend)

    if len(turn().turn.calls) != 1:
        raise ValueError("the traced request gave no call")
    trace = _Trace(package.name)
    sys.setprofile(trace)
    try:
        turn()
    finally:
        sys.setprofile(None)
    return {"returns": trace.returns, "files": len(trace.files)}


if __name__ == "__main__":
    print(json.dumps(_trace_here()))

"""Runs cases in a namespace that only has loopback: upstreams, gateways, and each client in a place of its own.

A case passes when the client ends with status 0, has shown the model's last words, and `out.txt` holds exactly what
the model asked for; and when the upstream was asked as the setting says: never with tools, or with them.
"""

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.clients.agents import Place, Start
from tests.clients.install import pins
from tests.clients.rows import Case, node
from tests.clients.script import content_of, prompt_of
from tests.clients.served import Gateways, slug
from tests.clients.tap import Tap
from tests.clients.upstream import MODEL, Noted

NESTED = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Each client gets its own processes to see: what it leaves running ends with it."""
PATHS = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class Result:
    """What a case came to."""

    case: Case
    faults: tuple[str, ...]
    seconds: float
    plans: tuple[str, ...]
    client_requests: int
    upstream_requests: int
    folder: Path

    @property
    def ok(self) -> bool:
        """Say whether it went as it should: a row with an explanation must fail."""
        return bool(self.faults) == bool(self.case.row.fails)


async def drive(cases: Sequence[Case], jobs: int, folder: Path) -> AsyncIterator[Result]:
    """Run all cases, a few at a time."""
    gate = asyncio.Semaphore(jobs)
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        gateways = Gateways(stack, folder)
        started = [tasks.create_task(_run(case, gateways, gate, folder)) for case in cases]
        for task in asyncio.as_completed(started):
            yield await task


async def _run(case: Case, gateways: Gateways, gate: asyncio.Semaphore, folder: Path) -> Result:
    async with gate:
        both = await gateways.get(case.setting)
        tap = Tap(both.port)
        await tap.start()
        code = secrets.token_hex(4)
        place = _place(case, tap.port, code, folder / slug(f"{case.name}-{code}"))
        started = time.perf_counter()
        status = await _execute(case, place)
        seconds = time.perf_counter() - started
        tap.stop()
        tap.save(place.home.parent)
        notes = [note for note in both.upstream.notes if note.code == code]
        faults = (*_faults(case, place, code, status), *_gateway_faults(tap), *_upstream_faults(case, notes))
        figures = (round(seconds, 2), tuple(tap.plans), len(tap.requests), len(notes))
        return Result(case, faults, *figures, place.home.parent)


def _place(case: Case, port: int, code: str, folder: Path) -> Place:
    """Make a fresh home and an empty repository."""
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    subprocess.run(["git", "init", "--quiet", str(work)], check=True)
    model = f"{MODEL}-{code}" if case.setting.mode == "refuses" else MODEL
    prompt = prompt_of(code, str(work), case.row.wish) + (f" {case.row.more}." if case.row.more else "")
    return Place(f"http://127.0.0.1:{port}", home, work, prompt, model)


async def _execute(case: Case, place: Place) -> int | None:
    """Run the client; None if it had to be stopped."""
    start = case.row.start(place)
    for path, text in start.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    folder = place.home.parent
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        # The shell is the first process of the namespace: no client expects to be that.
        process = await asyncio.create_subprocess_exec(
            *(*NESTED, "sh", "-c", '"$@"; exit $?', "client", *start.command),
            cwd=place.work,
            env=_environment(start, place),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        return await _status(process, case.row.limit_s)


async def _status(process: asyncio.subprocess.Process, limit_s: float) -> int | None:
    try:
        return await asyncio.wait_for(process.wait(), limit_s)
    except TimeoutError:
        process.kill()
        await process.wait()
        return None


def _environment(start: Start, place: Place) -> dict[str, str]:
    """Nothing of ours: no proxies, no keys."""
    program = pins()[start.node].folder / "node_modules" / ".bin" if start.node else Path(node()).parent
    return {
        "PATH": f"{program}:{Path(sys.executable).parent}:{PATHS}",
        "HOME": str(place.home),
        "TERM": "dumb",
        "CI": "1",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        **start.env,
    }


def _faults(case: Case, place: Place, code: str, status: int | None) -> Iterator[str]:
    folder = place.home.parent
    if status is None:
        yield f"stopped after {case.row.limit_s:g} s"
    elif status:
        yield f"exit status {status}"
    written = place.work / "out.txt"
    if not written.exists():
        yield "out.txt is not there"
    elif written.read_text(encoding="utf-8", errors="replace").rstrip("\n") != content_of(code).rstrip("\n"):
        yield f"out.txt holds {written.read_text(errors='replace')!r}"
    if case.row.finishes and f"fin-{code}" not in (folder / "stdout").read_text(errors="replace"):
        yield "the model's last words are not shown"


def _gateway_faults(tap: Tap) -> Iterator[str]:
    """Let a client ask for what we do not have; but what it posts must be answered, at the first try."""
    for line in tap.requests:
        if line.startswith("POST ") and not line.endswith(" 200"):
            yield f"the gateway answered {line}"


def _upstream_faults(case: Case, notes: Sequence[Noted]) -> Iterator[str]:
    if not notes:
        yield "the upstream was never asked"
    if not case.row.calls:
        return
    mode, tools = case.setting.mode, [note for note in notes if note.tools]
    if any(note.echoes > (0 if note.tools else 1) for note in notes):
        yield "the call was also let out as text"
    if mode == "ignores" and tools:
        yield "the upstream was sent tools, which the gateway was told to emulate"
    if mode in {"native", "leaks"} and not tools:
        yield "the upstream was sent no tools"
    refused = sum(note.said == "refused" for note in notes)
    if mode == "refuses" and refused != 1:
        yield f"the upstream refused tools {refused} times; the first must be remembered"


def summary(result: Result) -> dict[str, object]:
    """Return what is kept of a result."""
    row = result.case.row
    return {
        "client": row.client,
        "version": row.version,
        "wire": row.wire,
        "upstream": result.case.setting.name,
        "calls": row.calls,
        "passed": not result.faults,
        "seconds": result.seconds,
        "client_requests": result.client_requests,
        "upstream_requests": result.upstream_requests,
        "plans": list(result.plans),
        **({"faults": list(result.faults)} if result.faults else {}),
        **({"explanation": row.fails} if row.fails else {}),
    }


def tail(result: Result, length: int = 1500) -> str:
    """Return the last things that a client said."""
    told = [(result.folder / name).read_text(errors="replace")[-length:] for name in ("stdout", "stderr")]
    return "\n".join(filter(str.strip, told))


def inside(cases: Sequence[Case], jobs: int, folder: Path) -> list[Result]:
    """Run cases and print a line for each."""
    return asyncio.run(_collect(cases, jobs, folder))


async def _collect(cases: Sequence[Case], jobs: int, folder: Path) -> list[Result]:
    results: list[Result] = []
    async for result in drive(cases, jobs, folder):
        results.append(result)
        mark = "ok" if result.ok else "FAIL"
        print(f"{mark:4} {result.case.name:70} {result.seconds:6.2f} s {'; '.join(result.faults)}", flush=True)
        if not result.ok:
            print(f"     kept in {result.folder}\n{tail(result)}", flush=True)
    return results


def write(summaries: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write the results down, a line for each."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in summaries)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")

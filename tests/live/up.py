"""`just up-live`: a real model run by `toolspeak up` answers, back after `kill -9` and SIGSTOP, ends with it (RUN-6).

The same model under two names takes turns with itself: one is loaded at a time, whatever is killed (UP-3 to UP-6). The
model has 135 million weights: what it says does not matter here.
"""

import http.client
import json
import os
import re
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from testkit.llama_models import path_of
from testkit.report import close
from tests.live.upped import STOP_S, Upped, upped

MODEL = "smollm2-135m"
LONG = 120.0
RESTARTS = 2
"""One after `kill -9`, one after SIGSTOP."""
TURNS = 6
"""Requests to the two models in turn."""
NEEDS = re.compile(r"needs about ([\d.]+) MB of memory")
SLACK = 1.5
"""The estimate is at most this many times what the server takes, and never less."""


def asked(up: Upped, model: str = "gpt-5.5", tokens: int = 8) -> tuple[int, dict[str, Any]]:
    """Ask for a few words through the gateway."""
    split = urlsplit(up.url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=LONG)
    body = {"model": model, "max_tokens": tokens, "messages": [{"role": "user", "content": "What is the sky?"}]}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def is_answered(up: Upped, model: str = "gpt-5.5", tokens: int = 8) -> bool:
    status, said = asked(up, model, tokens)
    print(f"{status}: {said}"[:200], flush=True)
    return status == http.client.OK and bool(said["choices"][0]["message"]["content"].strip())


def is_gone(pid: int) -> bool:
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def resident(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def faults(log: Path) -> dict[str, bool]:
    """Say what holds of one model."""
    with upped([path_of(MODEL)], log, "--context", "2048") as up:
        found = {"answers": is_answered(up)}
        [first] = up.children()
        needs = NEEDS.search(log.read_text())
        print(f"estimated {needs[1] if needs else '-'} MB, takes {resident(first):.0f} MB", flush=True)
        found["needs about as much memory as it said"] = bool(
            needs and resident(first) <= float(needs[1]) <= SLACK * resident(first)
        )
        os.kill(first, signal.SIGKILL)
        found["answers after kill -9 of the server"] = is_answered(up)
        [second] = up.children()
        found["by another process"] = second != first and is_gone(first)
        os.kill(second, signal.SIGSTOP)
        found["answers after SIGSTOP of the server"] = is_answered(up)
        [third] = up.children()
        found["which was hung, and is gone"] = third != second and is_gone(second)
        print(log.read_text())
        found["one log line for each restart"] = log.read_text().count("it is started again") == RESTARTS
        up.process.kill()
        up.process.wait()
        found["nothing is left after kill -9 of toolspeak up"] = is_gone(third)
    with upped([path_of(MODEL)], log, "--context", "2048") as up:
        [fourth] = up.children()
    found["ends in order"] = up.process.returncode == 0 and is_gone(fourth)
    return found


def switches(folder: Path, log: Path) -> dict[str, bool]:
    """Say what holds of two models, which are one file under two names."""
    names = ("red", "blue")
    paths = [folder / f"{name}.gguf" for name in names]
    for path in paths:
        path.symlink_to(path_of(MODEL))
    with upped(paths, log, "--context", "2048") as up, ThreadPoolExecutor(2) as pool:
        found = {"nothing is loaded before a request": up.children() == []}
        began = time.monotonic()
        found["both answer in turn"] = all(is_answered(up, names[turn % 2]) for turn in range(TURNS))
        print(f"{TURNS} answers with {TURNS} loads in {time.monotonic() - began:.1f} s", flush=True)
        found["one is loaded at a time"] = len(up.children()) == 1
        both = [pool.submit(is_answered, up, name, 64) for name in names * 2]
        found["open answers finish while the other waits"] = all(each.result(LONG) for each in both)
        [last] = up.children()
        os.kill(last, signal.SIGKILL)
        found["both answer after kill -9 of the loaded one"] = all(is_answered(up, name) for name in names)
        waits = pool.submit(asked, up, names[0])
        left = seen_until_switch(up)
        up.process.kill()
        up.process.wait()
        waits.exception(LONG)
        found["nothing is left after kill -9 while they switch"] = bool(left) and all(is_gone(pid) for pid in left)
    with upped(paths, log, "--context", "2048", "--idle", "1") as up:
        is_answered(up, names[1])
        [idle] = up.children()
        found["an idle one is unloaded"] = is_gone(idle)
        is_answered(up, names[0])
        [end] = up.children()
    found["two end in order"] = up.process.returncode == 0 and is_gone(end)
    return found


def seen_until_switch(up: Upped) -> set[int]:
    """Return all servers that are seen until another one than the first begins."""
    seen = set(up.children())
    first, until = set(seen), time.monotonic() + LONG
    while seen == first and time.monotonic() < until:
        seen |= set(up.children())
    return seen


def main() -> None:
    """Try all of it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = faults(Path(folder) / "one") | switches(Path(folder), Path(folder) / "two")
    for what, holds in found.items():
        print(f"{'yes' if holds else ' NO'}  {what}")
    close("up", ok=all(found.values()), model=MODEL, checks=len(found), seconds=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()

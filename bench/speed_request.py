"""`just speed-request`: µs of CPU per request through the whole gateway, in memory: no sockets, no HTTP.

The same request goes through ASGI, admission, wires, engine and log, to an upstream that answers at once. A small
request has no tools; the others have 30. Tools are warm if the gateway has seen them before, and cold if not.

    python -m bench.speed_request [--rounds N] [--profile NAME] [--save]
"""

import argparse
import asyncio
import cProfile
import gc
import json
import platform
import pstats
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from bench.gateway import answers, asks
from bench.gateway.workloads import fresh, same
from testkit.report import close, progress
from toolspeak.config.file import parse_config
from toolspeak.gateway.asgi import Asgi, AsgiMessage
from toolspeak.gateway.server import build
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Timeouts

WIRE = "openai_chat"
RESULTS = Path(__file__).parent / "results" / "speed-request.json"
CONFIG = """
[server]
probe = "off"
[upstreams.up]
url = "http://127.0.0.1:1/v1"
wire = "openai_chat"
"""
FORCED = '[tools]\nmode = "force"\ndialect = "fenced"\n'
REQUESTS = 40
"""Requests in a round of one workload."""
MOST_WARM, MOST_COLD = 1.5, 5.0
"""30 tools seen before against no tools, and tools never seen against those."""


class _Answered:
    """A response that is complete at once."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self.headers: Mapping[str, str] = {"content-type": "application/json", "Content-Type": "application/json"}
        self._body = body

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def close(self) -> None: ...

    def end(self) -> None: ...


class Recorded:
    """A transport whose upstream answers each request with the same bytes, chosen by the model's name."""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> _Answered:
        """Answer a turn, or the list of models."""
        del url, headers, timeouts
        if method == "GET":
            return _Answered(json.dumps({"object": "list", "data": [{"id": name} for name in answers.MODELS]}).encode())
        kind = next(kind for kind in answers.KINDS if b'"%s-' % kind.encode() in body[:60] + body[-200:])
        return _Answered(answers.whole(WIRE, kind))

    async def close(self) -> None:
        """Close nothing."""


async def ask(app: Asgi, body: bytes) -> bytes:
    """Send a request to the gateway, and return the body of its response."""
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"user-agent", b"bench")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "raw_path": b"/v1/chat/completions",
        "query_string": b"",
        "headers": [*headers, (b"content-length", b"%d" % len(body))],
        "client": ("127.0.0.1", 5),
    }
    sent: list[bytes] = []
    left = [{"type": "http.request", "body": body, "more_body": False}]
    gone = asyncio.Event()

    async def receive() -> AsgiMessage:
        if left:
            return left.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: AsgiMessage) -> None:
        sent.append(message.get("body", b""))

    await app(scope, receive, send)
    return b"".join(sent)


def workloads() -> dict[str, tuple[str, Callable[[int], bytes], bytes]]:
    """Return by name: the configuration, the bodies, and what the response must contain."""
    call = answers.TOOL.encode()
    tools, fenced = asks.with_tools("call-0"), asks.with_tools("fenced-0")
    return {
        "small": (CONFIG, same(asks.small("small-0")), answers.LAST.encode()),
        "native warm": (CONFIG, same(tools), call),
        "native cold": (CONFIG, fresh(tools), call),
        "emulated warm": (CONFIG + FORCED, same(fenced), call),
        "emulated cold": (CONFIG + FORCED, fresh(fenced), call),
    }


async def opened() -> dict[str, Callable[[], Awaitable[None]]]:
    """Return a function that sends each workload once."""
    apps = dict[str, Asgi]()
    made = dict[str, Callable[[], Awaitable[None]]]()
    for name, (text, body, wanted) in workloads().items():
        if text not in apps:
            apps[text] = build(parse_config(text, "bench.toml", {}), transport=Recorded())

        async def once(app: Asgi = apps[text], body: Callable[[int], bytes] = body, wanted: bytes = wanted) -> None:
            answered = await ask(app, body(0))
            if wanted not in answered:
                raise AssertionError(f"not the answer: {answered[:300]!r}")

        made[name] = once
    return made


async def measure(rounds: int) -> dict[str, list[float]]:
    """Return µs per request of each round; the workloads are interleaved."""
    asked = await opened()
    for once in asked.values():
        for _ in range(5):
            await once()
    found: dict[str, list[float]] = {name: [] for name in asked}
    for done in range(rounds):
        for name, once in asked.items():
            gc.collect()
            start = time.process_time()
            for _ in range(REQUESTS):
                await once()
            found[name].append((time.process_time() - start) / REQUESTS * 1e6)
        progress(done + 1, rounds, "rounds")
    return found


async def profile(name: str) -> None:
    """Print a profile of a workload."""
    once = (await opened())[name]
    for _ in range(5):
        await once()
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(REQUESTS * 5):
        await once()
    profiler.disable()
    stats = pstats.Stats(profiler).strip_dirs()
    stats.sort_stats("tottime").print_stats(45)
    stats.sort_stats("cumtime").print_stats(110)


def main() -> None:
    """Measure and exit."""
    options = argparse.ArgumentParser(prog="bench.speed_request")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--profile", default="")
    options.add_argument("--save", action="store_true")
    chosen = options.parse_args()
    if chosen.profile:
        asyncio.run(profile(chosen.profile))
        return
    found = asyncio.run(measure(chosen.rounds))
    figures = {name: round(statistics.median(each)) for name, each in found.items()}
    for name, each in found.items():
        print(f"{name:14} {statistics.median(each):7.0f} µs per request, least {min(each):7.0f}")
    ratios = {
        "native_warm": round(figures["native warm"] / figures["small"], 2),
        "emulated_warm": round(figures["emulated warm"] / figures["small"], 2),
        "native_cold": round(figures["native cold"] / figures["native warm"], 2),
        "emulated_cold": round(figures["emulated cold"] / figures["emulated warm"], 2),
    }
    if chosen.save:
        kept = {"python": platform.python_version(), "us_per_request": figures, "ratios": ratios}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    warm = max(ratios["native_warm"], ratios["emulated_warm"])
    cold = max(ratios["native_cold"], ratios["emulated_cold"])
    least = {name.replace(" ", "_") + "_us": round(min(each)) for name, each in found.items()}
    close("speed-request", ok=warm <= MOST_WARM and cold <= MOST_COLD, **ratios, **least)


if __name__ == "__main__":
    main()

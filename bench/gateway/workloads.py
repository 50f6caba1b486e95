"""The workloads: each with its subjects, and the unit that its CPU is divided by."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.gateway import answers, asks
from bench.gateway.load import Load

CHAT = "/v1/chat/completions"
TEXT = (answers.FIRST.encode(), b"all.")
CALL = (answers.TOOL.encode(), b'"tool_calls"')
CHUNK, REQUEST, FIRST_BYTE = "chunk", "request", "first byte"
OURS = ("bare", "native", "emulated")
PUSH = ("push", "push-emulated")
"""Ours with the other driver; not in the quick run."""
PROXIES = ("envoy", "nginx")
"""They forward bytes without parsing them: the least that a gateway costs."""
PEERS = ("litellm", "forge", "portkey")
ALL = ("direct", *PROXIES, *OURS, *PUSH, *PEERS)


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table."""

    name: str
    what: str
    unit: str
    subjects: tuple[str, ...]
    load: Load
    chunks: int = 1
    """Units in one request."""
    own_body: tuple[tuple[str, Callable[[int], bytes]], ...] = ()
    """Bodies for subjects that need a different request: another model, which answers in their form."""

    def load_of(self, subject: str, slow: int) -> Load:
        """Return the load of one subject: slow subjects get fewer requests, unless each request is timed."""
        body = dict(self.own_body).get(subject, self.load.body)
        fewer = max(self.load.requests // slow, self.load.streams)
        requests = self.load.requests if self.unit == FIRST_BYTE else fewer
        return replace(self.load, body=body, requests=requests)


def same(body: bytes) -> Callable[[int], bytes]:
    """Send the same body each time."""
    return lambda _: body


def fresh(body: bytes) -> Callable[[int], bytes]:
    """Send tools that were never seen before, each time."""
    seen = [0]

    def made(_: int) -> bytes:
        seen[0] += 1
        return body.replace(asks.FRESH, b"#%07d" % seen[0])

    return made


def chunks(kind: str) -> int:
    return len(answers.frames("openai_chat", kind))


def streams(name: str, what: str, model: str, size: tuple[int, int], subjects: tuple[str, ...]) -> Workload:
    """Return a workload of streams: `size` is how many at once, and how many in all."""
    kind = model.partition("-")[0]
    load = Load(CHAT, same(asks.with_one_tool(model)), *size, TEXT if kind == "text" else CALL)
    return Workload(name, what, CHUNK, subjects, load, chunks(kind))


def with_tools(
    name: str, what: str, subjects: tuple[str, ...], body: Callable[[bytes], Callable[[int], bytes]]
) -> Workload:
    """Return a workload of 30 tools, emulated: each is answered in the form that it teaches."""
    forge = ("forge-prompt", body(asks.with_tools("forge-0")))
    load = Load(CHAT, body(asks.with_tools("fenced-0")), 4, 160, CALL)
    return Workload(name, what, REQUEST, subjects, load, own_body=(forge,))


def workloads() -> list[Workload]:
    """Return all workloads of the full run."""
    small = Load(CHAT, same(asks.small("small-0")), 8, 1600, (answers.LAST.encode(),))
    tools = Load(CHAT, same(asks.with_tools("call-0")), 4, 240, CALL)
    calls = Load(CHAT, same(asks.with_tools("call-2", stream=True)), 16, 32, CALL)
    brief = Load(CHAT, same(asks.with_one_tool("brief-2")), 1, 40, TEXT, answers.FIRST.encode())
    emulating = ("emulated", "push-emulated", "forge-prompt")
    passing = ("direct", *PROXIES, "bare", "native", "push", *PEERS)
    return [
        Workload("small", "small question, whole answer", REQUEST, ALL, small),
        Workload("tools", "30 tools (33 KB), answer with a call", REQUEST, passing, tools),
        with_tools("emulated-warm", "30 tools, emulated, tools seen before", emulating, same),
        with_tools("emulated-cold", "30 tools, emulated, tools never seen", emulating, fresh),
        streams("burst", "stream in one write", "text-0", (8, 80), ALL),
        streams("paced16", "16 streams, a chunk each 2 ms", "text-2", (16, 48), ALL),
        Workload("calls16", "as paced16: 30 tools, a call", CHUNK, ("bare", "native", *PEERS), calls, chunks("call")),
        streams("paced48", "48 streams, a chunk each 5 ms", "text-5", (48, 96), (*PROXIES, *OURS, *PUSH)),
        streams("paced96", "96 streams, a chunk each 5 ms", "text-5", (96, 192), (*PROXIES, *OURS, *PUSH)),
        streams("fenced96", "as paced96: a call in fenced text", "fenced-5", (96, 192), ("emulated", "push-emulated")),
        streams("call96", "as paced96: a native call", "call-5", (96, 192), (*PROXIES, "bare", "native")),
        Workload("first", "one stream at a time", FIRST_BYTE, ALL, brief),
    ]


def quick() -> list[Workload]:
    """Return the workloads of the quick run, for ours only, with half the requests."""
    kept = ("small", "tools", "emulated-warm", "paced96", "fenced96", "first")
    made: list[Workload] = []
    for workload in workloads():
        if workload.name in kept:
            mine = tuple(name for name in workload.subjects if name in ("direct", *OURS))
            load = replace(workload.load, requests=max(workload.load.requests // 2, workload.load.streams))
            made.append(replace(workload, subjects=mine, load=load))
    return made


def pair(client: str, upstream: str) -> Workload:
    """Return the streams of a client's wire over an upstream's wire."""
    path, body = asks.on_wire(client, "text-5")
    load = Load(path, same(body), 48, 48, TEXT)
    frames = len(answers.frames(upstream, "text"))
    return Workload(
        f"{client} over {upstream}", "48 streams, a chunk each 5 ms", CHUNK, (f"over {upstream}",), load, frames
    )

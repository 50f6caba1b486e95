"""Runs a case through a gateway of each driver, and compares what the client and the upstream have seen."""

import asyncio
import re
import socket
import struct
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Final

from typing_extensions import override

from testkit.driver_cases import (
    BAD_CHUNK,
    CLOSES,
    LEAVES,
    NO_HTTP,
    READS_SLOWLY,
    RESETS,
    SHORT,
    STALLS,
    DriverCase,
    driver_case,
)
from testkit.protocols import WIRES
from testkit.report import progress
from toolspeak.config.shape import Config, Driver, Server, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.gateway.server import background_server, build
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.transport import Timeouts
from toolspeak.upstreams import Auth

PAUSE: Final = 0.002
"""Seconds between two chunks of the upstream: each is read before the next one comes."""
LONG_PAUSE: Final = 0.1
"""The same for a case that has differed. What a client sees of an answer that breaks off depends on which chunks the
gateway has read at once, with either driver; on a busy machine that varies."""
BEFORE_FAULT: Final = 0.3
"""Seconds before a fault. aiohttp drops bytes that its reader has not taken when the connection breaks."""
SILENCE: Final = 1.0
"""Seconds for which an upstream with a short timeout may be silent."""
PATIENCE: Final = 15.0
LEAVES_AFTER: Final = 1.0
"""Seconds after which a client leaves if it has received nothing of the body. They count from the moment at which the
upstream has the request: on a busy machine the client could leave before one of the gateways has sent it."""
SHOWN: Final = 20
"""Differences that are printed."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)\r\n")


class CaseClock(Clock):
    """A clock that is frozen during a case, so that ids, times and budgets are the same for both drivers."""

    def __init__(self) -> None:
        self._case = 0
        self._ids = 0

    def begin(self, case: int) -> None:
        """Begin a case, long after the previous one, so that the gateway no longer remembers a failed server."""
        self._case, self._ids = case, 0

    @override
    def seconds(self) -> int:
        return 1_800_000_000

    @override
    def nanoseconds(self) -> int:
        return 1_800_000_000_000_000_000 + self._case

    @override
    def monotonic(self) -> float:
        return 1e6 + self._case * 3600.0

    @override
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.001))

    @override
    def chance(self) -> float:
        return 0.5

    @override
    def fresh_id(self) -> str:
        self._ids += 1
        return f"{self._case:012x}{self._ids:012x}"


@dataclass
class Seen:
    """The observations of one case."""

    head: bytes = b""
    body: bytes = b""
    """Without the framing of chunks."""
    end: str = ""
    """`whole`, `cut`, `left` or `late`."""
    requests: list[bytes] = field(default_factory=list[bytes])
    """What the upstream got: the line, the headers but `host`, and the body."""
    is_freed: bool = True
    """The upstream's connection was closed after the client had left."""

    def differences(self, other: "Seen", *, has_left: bool) -> list[str]:
        """Return how two differ. A client that leaves may have seen more or less of the same bytes."""
        if has_left:
            return _differences(self._seen_by(other), other._seen_by(self))
        return _differences(self, other)

    def _seen_by(self, other: "Seen") -> "Seen":
        return replace(self, head=self.head[: len(other.head)], body=self.body[: len(other.body)])


def _differences(one: Seen, other: Seen) -> list[str]:
    pairs = [(each.name, getattr(one, each.name), getattr(other, each.name)) for each in fields(Seen)]
    return [f"{name}: {left!r} != {right!r}" for name, left, right in pairs if left != right]


class CaseUpstream:
    """An upstream that sends the bytes of the current case. It runs in the event loop of the clients."""

    def __init__(self) -> None:
        self.port = 0
        self.pause = PAUSE
        self.case: DriverCase | None = None
        self.requests: list[bytes] = []
        self.asked = asyncio.Event()
        self.freed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.sleep(0)

    def begin(self, case: DriverCase) -> None:
        self.case, self.requests = case, []
        self.asked.clear()
        self.freed.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._answered(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.freed.set()
            writer.transport.abort()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request, and return whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        found = _LENGTH.search(head.lower())
        body = await reader.readexactly(int(found[1]) if found else 0)
        case = self.case
        if case is None or head.startswith(b"GET"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
            return True
        self.requests.append(re.sub(rb"(?i)\r\nhost: [^\r]*", b"", head) + body)
        self.asked.set()
        for piece in case.pieces():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(self.pause)
        return await self._fault(case, reader, writer)

    async def _fault(self, case: DriverCase, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if case.fault == RESETS:
            await asyncio.sleep(BEFORE_FAULT)
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return False
        if case.fault == BAD_CHUNK:
            await asyncio.sleep(BEFORE_FAULT)
            writer.write(b"\xff\r\nzz\r\nzz\0\r\n" * 4)
        if case.fault in (BAD_CHUNK, STALLS, LEAVES):
            await reader.read()
            return False
        if case.fault in (CLOSES, NO_HTTP) or case.ends_with_connection:
            await asyncio.sleep(BEFORE_FAULT)
            writer.close()
            return False
        return True


class CaseClient:
    """A client of one gateway, with a connection that it keeps."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, case: DriverCase, seen: Seen, asked: asyncio.Event) -> None:
        """Send the request, and note the response. `asked` is set when the upstream has the request."""
        if self._connection is None or case.fault == READS_SLOWLY:
            self.close()
            self._connection = await self._connect(is_small=case.fault == READS_SLOWLY)
        reader, writer = self._connection
        writer.write(case.request)
        leaves = self._leave(case, seen, reader, asked) if case.fault == LEAVES else None
        try:
            async with asyncio.timeout(PATIENCE):
                await (leaves or self._read(case, seen, reader))
        except TimeoutError:
            seen.end = "left" if case.fault == LEAVES else "late"
        except (asyncio.IncompleteReadError, OSError) as error:
            seen.end = "cut"
            seen.body += getattr(error, "partial", b"")
        if seen.end != "whole" or b"\r\nconnection: close" in seen.head or case.fault == READS_SLOWLY:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection[1].transport.abort()
            self._connection = None

    async def _connect(self, *, is_small: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = socket.socket()
        if is_small:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=made, limit=4096 if is_small else 1 << 16)

    async def _leave(self, case: DriverCase, seen: Seen, reader: asyncio.StreamReader, asked: asyncio.Event) -> None:
        reading = asyncio.create_task(self._read(case, seen, reader))
        asking = asyncio.create_task(asked.wait())
        try:
            await asyncio.wait((reading, asking), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait_for(reading, LEAVES_AFTER)
        finally:
            asking.cancel()
            reading.cancel()

    async def _read(self, case: DriverCase, seen: Seen, reader: asyncio.StreamReader) -> None:
        seen.head = await reader.readuntil(b"\r\n\r\n")
        found = _LENGTH.search(seen.head)
        if found is not None:
            seen.body = await reader.readexactly(int(found[1]))
        elif b"\r\ntransfer-encoding: chunked\r\n" in seen.head:
            while size := int((await reader.readuntil(b"\r\n")).rstrip(), 16):
                seen.body += await reader.readexactly(size)
                await reader.readexactly(2)
                if case.fault == LEAVES:
                    break
                if case.fault == READS_SLOWLY and len(seen.body) % 16 == 0:
                    await asyncio.sleep(PAUSE)
            else:
                await reader.readexactly(2)
        seen.end = "left" if case.fault == LEAVES else "whole"


class DriverSide:
    """A gateway of one driver, with its upstream and its client."""

    def __init__(self, driver: Driver) -> None:
        self.driver: Final = driver
        self.upstream: Final = CaseUpstream()
        self.clock: Final = CaseClock()
        self.client = CaseClient(0)

    @contextmanager
    def serving(self) -> Generator[None]:
        """Run the gateway in a thread; the upstream has started."""
        config = self._config()
        with background_server(build(config, self.clock), config) as url:
            self.client = CaseClient(int(url.rpartition(":")[2]))
            yield
            self.client.close()

    def _config(self) -> Config:
        base = f"http://127.0.0.1:{self.upstream.port}"
        bases = {"ollama": base, "gemini": f"{base}/v1beta"}
        steady = Timeouts(first_byte=2 * PATIENCE, idle=2 * PATIENCE)
        plain = [Upstream(wire, bases.get(wire, f"{base}/v1"), wire, Auth.BEARER, "sk-up") for wire in WIRES]
        upstreams = [replace(each, timeouts=steady) for each in plain]
        brief = Timeouts(first_byte=SILENCE, idle=SILENCE, total=3 * SILENCE)  # which a whole answer's head may take
        upstreams += [replace(each, name=SHORT + each.name, timeouts=brief) for each in plain]
        return Config(server=Server(port=0, probe=Depth.OFF, driver=self.driver), upstreams=tuple(upstreams))

    async def run(self, case: DriverCase, number: int) -> Seen:
        """Run a case."""
        self.clock.begin(number)
        self.upstream.begin(case)
        seen = Seen()
        await self.client.ask(case, seen, self.upstream.asked)
        if seen.end == "left":
            try:
                async with asyncio.timeout(PATIENCE / 4):
                    await self.upstream.freed.wait()
            except TimeoutError:
                seen.is_freed = False
        seen.requests = list(self.upstream.requests)
        return seen


class DriverPair:
    """A gateway of each driver."""

    def __init__(self) -> None:
        self.sides: Final = tuple(DriverSide(driver) for driver in Driver)
        self._number = 0

    async def start(self) -> None:
        """Start the upstreams."""
        for side in self.sides:
            await side.upstream.start()

    async def stop(self) -> None:
        """Stop the upstreams."""
        for side in self.sides:
            await side.upstream.stop()

    async def compared(self, case: DriverCase, pause: float = PAUSE) -> list[str]:
        """Run a case on both drivers, and return how they differ."""
        self._number += 1
        for side in self.sides:
            side.upstream.pause = pause
        seen = [await side.run(case, self._number) for side in self.sides]
        both = zip(self.sides, seen, strict=True)
        late = [f"{side.driver}: no whole answer in time" for side, each in both if each.end == "late"]
        return [*late, *seen[0].differences(seen[1], has_left=case.fault == LEAVES)]


async def run_cases(seeds: "asyncio.Queue[int]", pair: DriverPair, counts: Counter[str]) -> list[int]:
    """Take cases from the queue until it is empty, and return those that have differed twice."""
    differ: list[int] = []
    while not seeds.empty():
        seed = seeds.get_nowait()
        case = driver_case(seed)
        if await pair.compared(case):
            counts["repeated"] += 1
            if await pair.compared(case, LONG_PAUSE):
                differ.append(seed)
        counts[case.fault] += 1
        counts["cases"] += 1
        progress(counts["cases"], counts["cases"] + seeds.qsize(), "cases")
    return differ


async def run_alone(seeds: Iterable[int], pair: DriverPair, counts: Counter[str]) -> None:
    """Run cases once more with nothing in parallel: on a busy machine, timeouts of one second end some of them."""
    for seed in seeds:
        case = driver_case(seed)
        if not (found := await pair.compared(case)):
            continue
        counts["differences"] += 1
        if counts["differences"] <= SHOWN:
            what = f"{case.client} over {case.upstream}, {case.mode}, {case.fault}, stream={case.is_streamed}"
            print(f"just driver --cases 1 --seed {seed}: {what}", *found, sep="\n    ")


async def compare(first: int, count: int, pairs: int) -> Counter[str]:
    """Run the cases, and return how many there were of each kind."""
    counts: Counter[str] = Counter(differences=0)
    seeds: asyncio.Queue[int] = asyncio.Queue()
    for seed in range(first, first + count):
        seeds.put_nowait(seed)
    made = [DriverPair() for _ in range(min(pairs, count))]
    for pair in made:
        await pair.start()
    with ExitStack() as stack:
        for pair in made:
            for side in pair.sides:
                stack.enter_context(side.serving())
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(run_cases(seeds, pair, counts)) for pair in made]
        await run_alone(sorted(chain.from_iterable(each.result() for each in running)), made[0], counts)
        for pair in made:
            await pair.stop()
    return counts

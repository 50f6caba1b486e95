"""The clients of the fleet: streams on all five protocols, runs, and a tenant that sends more than its limit."""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from bench.fleet.checks import LIMITED, Answer, Question, RunAsked, Sample, Verdict, judge
from bench.fleet.deaths import CARRIER, Delay
from testkit.grammar import WIRES
from testkit.stream_ends import Book, Client, Heard
from testkit.vendor_requests import WRITE, Ask

STEADY = "steady"
"""The model, and its upstream, of the tenant whose limit is measured."""
RATE = 300
"""Requests a minute that this tenant may send."""
KEYS = {"streams": "sk-fleet-streams", "runs": "sk-fleet-runs", "metered": "sk-fleet-metered"}
"""By tenant; the metered one is the last."""
CHUNKS = 20, 40
"""Words of a stream, at least and at most."""
STREAM_S = 400.0
"""Seconds after which a stream counts as lost; longer than the gateway's own limit for an answer."""
ANSWER_S = 30.0
"""Seconds after which a small request counts as unanswered."""
MODELS = ("pool-native", "proxied-emulated", "pool-emulated", "proxied-native")
ROUNDS = 4
RESUMES = 30
AFTER_ERROR_S = 0.5
TICK_S = 0.05
"""How often the delay of the event loop is measured."""
BURST = 20
OFFERED = 1.5
"""The load of the metered tenant, as a multiple of its limit."""
NOT_SENT = -1
"""The status of a request that found no server."""
TOOLS = ("bench.fleet.run_tools:look", "bench.fleet.run_tools:put")


class _Client(Client):
    """A client that records the gateway that answered, and when its connection ended."""

    carrier = ""
    lost_at = 0.0

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == CARRIER.encode():
            self.carrier = value.decode().rpartition(", ")[2]

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_at = time.monotonic()
        super().connection_lost(exc)

    def leave(self) -> None:
        """Close the connection."""
        self._transport.close()


@dataclass
class Load:
    """All clients and what they got. Times are seconds since `began`."""

    port: int
    streams: int
    runs: int
    seconds: float
    began: float = 0.0
    right: int = 0
    others: list[Answer] = field(default_factory=list[Answer])
    """Answers that are not right: they are judged when all faults are known."""
    samples: list[Sample] = field(default_factory=list[Sample])
    accepted: list[RunAsked] = field(default_factory=list[RunAsked])
    resumed: int = 0
    refused: list[float] = field(default_factory=list[float])
    """When the load balancer took no connection: no request was sent, and the client tried again."""
    delays: list[Delay] = field(default_factory=list[Delay])
    """Of the event loop that all clients share."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def now(self) -> float:
        return time.monotonic() - self.began

    async def play(self) -> None:
        """Run all clients until the time is over; streams and requests that began by then may end."""
        self.began = self.began or time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._note_delays())
            for slot in range(self.streams):
                group.create_task(self._stream_on(slot))
            group.create_task(self._meter(group))
            for number in range(self.runs):
                group.create_task(self._begin_run(number))

    async def _note_delays(self) -> None:
        """Note when the event loop is late, until the time is over."""
        while self.now() < self.seconds:
            due = self.now() + TICK_S
            await asyncio.sleep(TICK_S)
            if (late := self.now() - due) > TICK_S:
                self.delays.append(Delay(self.now(), late))

    # ------------------------------------------------------------ streams

    async def _stream_on(self, slot: int) -> None:
        """Open one stream after the other. Slots begin one by one: a flood of first requests is another test."""
        await asyncio.sleep(slot / max(self.streams, 1) * min(20.0, self.seconds * 0.05))
        while self.now() < self.seconds:
            number = next(self._numbers)
            least, most = CHUNKS
            wire = WIRES[number % len(WIRES)]
            question = Question(number, wire, least + number * 7 % (most - least), calls=number % 3 == 0)
            answer = await self._stream(question)
            # a cut answer is judged in the end: judging thousands here would delay the other clients
            if answer.ended and judge(answer, ())[0] is Verdict.RIGHT:
                self.right += 1
            else:
                self.others.append(answer)
                await asyncio.sleep(AFTER_ERROR_S)

    async def _stream(self, question: Question) -> Answer:
        timed_out = False
        heard = Heard(question.number, question.wire, "")
        data = request(question, MODELS[question.number // len(WIRES) % len(MODELS)])
        client = _Client(heard, data, 0, Book())
        began = await self._connect(client)
        try:
            async with asyncio.timeout(STREAM_S):
                await client.done
        except TimeoutError:
            timed_out = True
            client.leave()
        body, done = bytes(heard.body), client.lost_at - self.began if client.lost_at else self.now()
        return Answer(question, began, done, heard.status, body, heard.ended, timed_out, client.carrier)

    async def _connect(self, client: "_Client") -> float:
        """Connect, again and again while the load balancer is down; return the start of the attempt that succeeded."""
        loop = asyncio.get_running_loop()
        while True:
            began = self.now()
            try:
                await loop.create_connection(lambda: client, "127.0.0.1", self.port)
            except OSError:
                self.refused.append(self.now())
                await asyncio.sleep(AFTER_ERROR_S)
            else:
                return began

    # ------------------------------------------------------------ the limit

    async def _meter(self, group: asyncio.TaskGroup) -> None:
        """Keep the limit used up: in bursts while nothing is refused, then a little more than the refill."""
        due = time.monotonic()
        while self.now() < self.seconds:
            recent = self.samples[-BURST:]
            refused = any(sample.status == LIMITED for sample in recent)
            async with asyncio.TaskGroup() as asking:
                for _ in range(1 if refused else BURST):
                    (group if refused else asking).create_task(self._sample())
            due = max(due + 60 / RATE / OFFERED, time.monotonic() - 1.0)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _sample(self) -> None:
        body = {"model": STEADY, "messages": [{"role": "user", "content": "metered"}]}
        sent = self.now()
        status, _ = await ask(self.port, "POST", "/v1/chat/completions", KEYS["metered"], body)
        if status == NOT_SENT:
            self.refused.append(self.now())
        else:
            self.samples.append(Sample(self.now(), status, sent))

    # ------------------------------------------------------------ runs

    async def _begin_run(self, number: int) -> None:
        """Start a run in the first half of the time, and retry until a gateway has accepted it."""
        asked = RunAsked(f"fleet-{number}", ROUNDS)
        await asyncio.sleep(number / max(self.runs, 1) * self.seconds / 2)
        body = {
            "id": asked.name,
            "task": f"run-{asked.name}-of-{asked.rounds}",
            "model": "pool-native",
            "tools": TOOLS,
            "approval": "off",
            "agent_prompt": False,
        }
        status = 0
        while status not in (200, 201) and self.now() < self.seconds:
            status, answer = await ask(self.port, "POST", "/v1/runs", KEYS["runs"], body)
            if status in (200, 201):
                self.accepted.append(asked)
            elif 400 <= status < 500 and status != LIMITED:
                raise AssertionError(f"a run was refused with {status}: {answer[:500]!r}")
            else:
                await asyncio.sleep(AFTER_ERROR_S)

    async def finish_runs(self, patience_s: float) -> None:
        """Wait for the end of all runs. A run whose turn failed is resumed, as an operator would do it."""
        deadline = time.monotonic() + patience_s
        open_runs = {run.name for run in self.accepted}
        while open_runs and time.monotonic() < deadline:
            for name in sorted(open_runs):
                status = (await self.shown(name)).get("status")
                if status == "failed" and self.resumed < RESUMES * len(self.accepted):
                    self.resumed += 1
                    await ask(self.port, "POST", f"/v1/runs/{name}/resume", KEYS["runs"], {})
                elif status in ("done", "summed_up", "cancelled", "failed"):
                    open_runs.discard(name)
            await asyncio.sleep(1.0)

    async def shown(self, name: str) -> dict[str, Any]:
        """Return a run as a gateway shows it, or nothing."""
        return await self._json(f"/v1/runs/{name}")

    async def messages(self, name: str) -> list[dict[str, Any]]:
        """Return the messages of a run."""
        found: list[dict[str, Any]] = (await self._json(f"/v1/runs/{name}?as=openai")).get("messages", [])
        return found

    async def _json(self, path: str) -> dict[str, Any]:
        for _ in range(10):
            status, body = await ask(self.port, "GET", path, KEYS["runs"])
            if status == 200:
                read: dict[str, Any] = json.loads(body)
                return read
            await asyncio.sleep(AFTER_ERROR_S)
        return {}


def request(question: Question, model: str) -> bytes:
    """Write the request of a stream, as a client of its protocol writes it."""
    path, body = WRITE[question.wire](Ask(stream=True))
    if question.wire == "gemini":
        path = path.replace("/models/m:", f"/models/{model}:")
    else:
        body["model"] = model
    wanted = f"stream-{question.number}-{'call' if question.calls else 'text'}-{question.chunks}"
    data = json.dumps(body).replace("How is the weather?", wanted).encode()
    return _head("POST", path, KEYS["streams"], len(data)) + data


def _head(method: str, path: str, key: str, length: int, **more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {key}"]
    lines += ["content-type: application/json", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in more.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def ask(port: int, method: str, path: str, key: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
    """Send one request on a new connection; return the status and the body, or 0 without a whole answer."""
    data = b"" if body is None else json.dumps(body).encode()
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(_head(method, path, key, len(data), connection="close") + data)
            received = await reader.read()
    except ConnectionRefusedError:
        return NOT_SENT, b""
    except (OSError, TimeoutError):
        return 0, b""
    finally:
        if writer is not None:
            writer.close()
    head, _, answer = received.partition(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"")
    with suppress(ValueError, IndexError):
        if int(length.partition(b":")[2]) == len(answer):
            return int(head.split(b" ")[1]), answer
    return 0, answer

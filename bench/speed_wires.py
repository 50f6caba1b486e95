"""`just speed-wires`: the cost of one streamed chunk, in µs of CPU, for each of the 25 pairs of wires.

Our figure is the whole path: bytes of the upstream's frame in, frames decoded, events, bytes of the client's frame out.
For comparison, the same rounds measure reading and writing only the JSON of that chunk, with json, msgspec and orjson.
`--save` keeps the figures in bench/results/speed-wires.json.
"""

import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import msgspec
import orjson

from testkit.matrix import STAMP, WIRES
from testkit.report import close, progress
from testkit.vendor_answers import STREAMS, Answer
from testkit.vendor_requests import WRITE, Ask
from toolspeak import wires

AIM = 3.0
"""Times the fastest reading and writing of the same JSON."""
ALARM = 8.0
"""More than that fails as a regression. Between the two is noise of the machine, and real cost."""
ROUNDS = 15
TEXT = "The harbour is quiet in the morning, and the first ferry leaves at half past six. " * 12
RESULTS = Path(__file__).parent / "results" / "speed-wires.json"


def frames(wire: str) -> list[bytes]:
    """Return the frames of a long text, as they come from the upstream: one a read."""
    end = "\n" if wire == "ollama" else "\n\n"
    text = STREAMS[wire](Answer(TEXT))
    return [(frame + end).encode() for frame in text.split(end) if frame]


def payload(frame: bytes) -> bytes:
    """Return the JSON of a frame."""
    return frame[frame.index(b"{") :].rstrip()


def ours(client: str, upstream: str) -> Callable[[], None]:
    """Return a function that converts a whole answer from the upstream's bytes to the client's."""
    path, body = WRITE[client](Ask(stream=True))
    request = wires.load(client).decode_request(json.dumps(body).encode(), path)
    reads = frames(upstream)

    def run() -> None:
        decoder = wires.load(upstream).new_decoder(request, ids())
        encoder = wires.load(client).new_encoder(request, STAMP)
        for read in reads:
            encoder.encode(decoder.feed(read))
        encoder.encode(decoder.finish())

    return run


def bare(upstream: str, both: Callable[[bytes], object]) -> Callable[[], None]:
    """Return reading and writing the JSON of the same frames, and nothing else."""
    bodies = [payload(frame) for frame in frames(upstream) if b"{" in frame]

    def run() -> None:
        for body in bodies:
            both(body)

    return run


def ids() -> Iterator[str]:
    return (f"call_{number}" for number in count())


def with_json(body: bytes) -> str:
    return json.dumps(json.loads(body))


def with_msgspec(body: bytes) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(body))


def with_orjson(body: bytes) -> bytes:
    return orjson.dumps(orjson.loads(body))


def measure(runs: dict[str, Callable[[], None]], chunks: int) -> dict[str, float]:
    """Return the median µs of CPU per chunk of each, in interleaved rounds."""
    figures: dict[str, list[float]] = {name: [] for name in runs}
    gc.disable()
    for number in range(ROUNDS + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if number:  # the first round only warms up
                figures[name].append((time.process_time() - start) / chunks * 1e6)
        gc.collect()
    gc.enable()
    return {name: statistics.median(values) for name, values in figures.items()}


def pairs() -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the figures of all pairs, one upstream's at a time."""
    for number, upstream in enumerate(WIRES):
        progress(number, len(WIRES), "upstream")
        runs = {f"{client} over {upstream}": ours(client, upstream) for client in WIRES}
        both = {"json": with_json, "msgspec": with_msgspec, "orjson": with_orjson}
        runs |= {name: bare(upstream, function) for name, function in both.items()}
        yield upstream, measure(runs, len(frames(upstream)))


def main() -> None:
    """Measure all pairs and exit."""
    ratios: list[float] = []
    table: dict[str, dict[str, float]] = {}
    for upstream, figures in pairs():
        fastest = min(figures["msgspec"], figures["orjson"])
        print(f"\nupstream {upstream}: json {figures['json']:.2f}, msgspec {figures['msgspec']:.2f}, ", end="")
        print(f"orjson {figures['orjson']:.2f} µs per chunk")
        for client in WIRES:
            cost = figures[f"{client} over {upstream}"]
            ratios.append(cost / fastest)
            print(f"    {client:<18} {cost:5.2f} µs  {cost / fastest:.2f} x")
        table[upstream] = {name: round(value, 2) for name, value in figures.items()}
    if "--save" in sys.argv:
        RESULTS.write_text(json.dumps({"python": platform.python_version(), "us_per_chunk": table}, indent=1) + "\n")
    within = sum(ratio <= AIM for ratio in ratios)
    worst, median = round(max(ratios), 2), round(statistics.median(ratios), 2)
    figures = {"pairs": len(ratios), "within_aim": within, "median_ratio": median, "worst_ratio": worst}
    close("speed-wires", ok=worst <= ALARM, aim=AIM, alarm=ALARM, **figures)


if __name__ == "__main__":
    main()

"""`just speed-engine`: the cost of the engine and the reader per streamed chunk, compared with wire and JSON.

The same upstream stream goes three ways: through the wires alone, through the engine with native tools, and through the
engine emulated. The difference is the engine's. `--save` keeps the figures in bench/results/speed-engine.json.
"""

import json
import platform
import sys
from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path

from bench.speed_wires import bare, frames, measure, with_msgspec
from testkit.matrix import STAMP
from testkit.report import close
from testkit.vendor_requests import WRITE, Ask
from toolspeak import wires
from toolspeak.engine.plan import Plan, decide
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.turn import take_turn
from toolspeak.ir.event import Event
from toolspeak.ir.request import Request
from toolspeak.runtime.drive import drive_sync
from toolspeak.wires import Wire

WIRE = "openai_chat"
ALARM = 8.0
"""Engine and reader may add this many times what the JSON of a chunk costs: a ratio holds on any machine."""
RESULTS = Path(__file__).parent / "results" / "speed-engine.json"


class Recorded:
    """An upstream that sends the same bytes each time, one frame a read."""

    def __init__(self, wire: Wire, reads: list[bytes]) -> None:
        self._wire, self._reads = wire, reads

    def open(self, request: Request) -> Generator[list[Event], None, None]:
        decoder = self._wire.new_decoder(request, ids())
        for read in self._reads:
            if events := decoder.feed(read):
                yield events
        if events := decoder.finish():
            yield events


def ids() -> Iterator[str]:
    return (f"call_{number}" for number in count())


def asked() -> Request:
    path, body = WRITE[WIRE](Ask(stream=True))
    return wires.load(WIRE).decode_request(json.dumps(body).encode(), path)


def through_wires(request: Request) -> Callable[[], None]:
    wire, reads = wires.load(WIRE), frames(WIRE)

    def run() -> None:
        encoder = wire.new_encoder(request, STAMP)
        for events in Recorded(wire, reads).open(request):
            encoder.encode(events)

    return run


def through_engine(request: Request, plan: Plan) -> Callable[[], None]:
    wire, reads = wires.load(WIRE), frames(WIRE)

    def run() -> None:
        encoder = wire.new_encoder(request, STAMP)
        drive_sync(take_turn(request, plan, emulated_ids(1)), Recorded(wire, reads), encoder.encode)

    return run


def main() -> None:
    """Measure and exit."""
    request = asked()
    plans = {mode: decide(request, Settings(mode=mode)) for mode in (Mode.OFF, Mode.AUTO, Mode.FORCE)}
    runs = {"json": bare(WIRE, with_msgspec), "wires": through_wires(request)}
    runs |= {plan.way.value: through_engine(request, plan) for plan in plans.values()}
    figures = {name: round(value, 2) for name, value in measure(runs, len(frames(WIRE))).items()}
    for name, value in figures.items():
        share = value - figures["wires"]
        print(f"{name:<8} {value:6.2f} µs per chunk" + (f"  engine and reader {share:.2f}" if share > 0 else ""))
    if "--save" in sys.argv:
        RESULTS.write_text(json.dumps({"python": platform.python_version(), "us_per_chunk": figures}, indent=1) + "\n")
    added = max(figures["native"], figures["force"]) - figures["wires"]
    ratio = round(added / figures["json"], 2)
    close("speed-engine", ok=ratio <= ALARM, added_us=round(added, 2), times_json=ratio, alarm=ALARM, **figures)


if __name__ == "__main__":
    main()

"""The interface between the fuzzer and each part under test."""

import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from testkit.wire_mutations import Path, changed
from testkit.wire_mutations import places as places_of
from toolspeak.ir.json import Json

STRETCHED: Final = 100_000
"""Bytes of a stretched input: the unit of the stall limit."""
STALL_S: Final = 0.050
"""CPU seconds that the slowest step of an input may take, for each 100 KB begun."""
TRIES: Final = 12
"""A suspected stall is timed this often, and the shortest time counts: other work on the machine only adds to it."""
_BEYOND_DOUBT: Final = 20
"""The multiple of the limit at which no second try is needed."""


class Broken(Exception):
    """A promise does not hold for an input."""


@dataclass(frozen=True)
class Target:
    """One part under test. An input is `header` bytes of choices (which dialect, how to split), then the content."""

    name: str
    header: int
    check: Callable[[bytes], None]
    """Runs an input. Any exception is a finding; errors that the part declares are expected and not raised."""
    steps: Callable[[bytes], Iterable[Callable[[], object]]]
    """Returns the calls that an event loop would make for an input, each of which blocks it until it returns."""
    seeds: Callable[[], Iterable[bytes]]
    words: Callable[[], Iterable[bytes]]
    """Tokens for the mutator's dictionary."""
    mutate: Callable[[bytes, random.Random], bytes | None] = lambda _data, _source: None
    """A mutation that knows the content's structure; None leaves the input to the fuzzer's own mutations."""

    def stretch(self, data: bytes, source: random.Random) -> bytes:
        """Repeat a part of an input until it has 100 KB: quadratic work shows only in long inputs."""
        head, content = data[: self.header], data[self.header :]
        if not content:
            return data
        places = [0, *(found.start() for found in _BETWEEN.finditer(content)), len(content)]
        start, end = sorted((source.choice(places), source.choice(places)))
        if start == end:
            start, end = 0, len(content)
        times = max(1, (STRETCHED - len(content)) // (end - start))
        return head + content[:start] + content[start:end] * times + content[end:]

    def cost(self, data: bytes) -> float:
        """Return the CPU seconds of the slowest step."""
        slowest = 0.0
        for step in self.steps(data):
            start = time.thread_time()
            step()
            slowest = max(slowest, time.thread_time() - start)
        return slowest

    def shortest_cost(self, data: bytes) -> float:
        """Return the least of several costs; stops early when one is within the limit, or beyond all doubt."""
        least = float("inf")
        for _ in range(TRIES):
            least = min(least, self.cost(data))
            if least < allowed(data) or least > _BEYOND_DOUBT * allowed(data):
                break
        return least


_BETWEEN = re.compile(rb"(?<=[,\n>}\]])|(?=[{\[<])")


def allowed(data: bytes) -> float:
    """Return the CPU seconds that the slowest step of this input may take."""
    return STALL_S * max(1.0, len(data) / STRETCHED)


def pieces(content: bytes, seed: int) -> list[bytes]:
    """Split bytes as the seed selects: 0 whole, 1 byte by byte (up to 4 KB), else at random places."""
    if seed == 0 or len(content) < 2:
        return [content]
    if seed == 1 and len(content) <= 4096:
        return [content[place : place + 1] for place in range(len(content))]
    return [content[start:end] for start, end in pairwise((0, *places(len(content), seed), len(content)))]


def places(length: int, seed: int) -> list[int]:
    """Return the sorted places of random cuts."""
    source = random.Random(seed)
    return sorted(source.randint(0, length) for _ in range(source.randint(1, 12)))


# ---------------------------------------------------------------- JSON mutations

ODD_VALUES: Final[tuple[Json, ...]] = (
    *(None, True, False, 0, -1, 0.5, 10**40, 1e308, -0.0, "", "x", "a\0b", "\ud83d", "data:image/png;base64,AA=="),
    *([], [None], [[[]]], {}, {"type": 5}, {"type": "text"}, {"a": {"b": {"type": "x"}}}, "auto", "function", [1, "a"]),
)


def mutated(body: dict[str, Any], source: random.Random, others: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a copy of a body with one to three places replaced, removed, or taken from another body."""
    for _ in range(source.randint(1, 3)):
        paths = list(places_of(body))
        if not paths:
            return body
        other = source.choice(others)
        new = source.choice(ODD_VALUES) if source.randrange(2) else at(other, source.choice(list(places_of(other))))
        body = changed(body, source.choice(paths), new)
    return body


def at(value: Any, path: Path) -> Any:  # noqa: ANN401 # as JSON is
    """Return what is at a place."""
    for key in path:
        value = value[key]
    return value

"""Ways to cut a text."""

import codecs
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise


def two_ways(text: str, *, edge: int, between: int) -> Iterator[tuple[str, ...]]:
    """Cut once: at every place within `edge` of either end, and at `between` places spread evenly over the rest."""
    middle = range(edge, len(text) - edge)
    step = max(1, -(-len(middle) // between))
    for place in (*range(1, min(edge, len(text))), *middle[::step], *range(max(edge, len(text) - edge), len(text))):
        yield text[:place], text[place:]


def by_characters(text: str) -> tuple[str, ...]:
    """Cut into characters."""
    return tuple(text)


def by_bytes(text: str) -> tuple[str, ...]:
    """Cut the UTF-8 bytes one by one, and decode them as they come."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    pieces = (decoder.decode(bytes((byte,))) for byte in text.encode("utf-8", "surrogatepass"))
    return tuple(piece for piece in pieces if piece)


def at_random(text: str, count: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Cut `count` times into a random number of random pieces."""
    source = random.Random(seed)
    for _ in range(count):
        cuts = source.randint(1, max(1, min(24, len(text))))
        places = sorted(source.randint(0, len(text)) for _ in range(cuts))
        yield pieces_at(text, places)


def pieces_at(text: str, places: Sequence[int]) -> tuple[str, ...]:
    """Cut at these places."""
    edges = [0, *places, len(text)]
    return tuple(text[start:end] for start, end in pairwise(edges))

"""Conversations with tools that really run."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.accuracy.score import Delivered, Score
from bench.accuracy.speak import Said, Speaker


@dataclass(frozen=True, slots=True)
class Played:
    """What an answer or a whole conversation came to."""

    right: bool
    valid: bool
    calls: tuple[Delivered, ...]
    text: str = ""
    failure: str = ""
    notes: Sequence[str] = ()

    @staticmethod
    def of(said: Said, score: Score) -> "Played":
        return Played(score.right, score.valid, said.calls, said.text, said.failure)


@dataclass(frozen=True, slots=True)
class Talk:
    id: str
    set: str = "multi_turn"


TALKS: Sequence[Talk] = ()


async def play(talk: Talk, speaker: Speaker) -> Played:
    raise NotImplementedError

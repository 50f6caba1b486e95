"""Scripted models for the attacks."""

from bench.vendor_answers import Answer
from tests.gateway.protocols import answering
from tests.gateway.upstream import Asked, Script


def speaks(answer: Answer) -> Script:
    """Answer turns; all else (a probe's own paths) is not found."""
    turn = answering(answer)

    async def script(asked: Asked) -> None:
        if asked.wire:
            await turn(asked)
        else:
            await asked.whole(404, b'{"error": {"message": "not found"}}')

    return script


COLD = speaks(Answer("It is cold."))

"""Scripted models for the attacks."""

from testkit.protocols import answering
from testkit.scripted_upstream import Asked, Script
from testkit.vendor_answers import Answer


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

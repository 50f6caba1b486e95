"""Which calls may run: at once, after a person's word, or not at all (RUN-5).

mode        reads   contained   reaches further   asks, and reads   asks, and changes
read-only   yes     no          no                ask               no
ask         yes     ask         ask               ask               ask
auto        yes     yes         ask               ask               ask
off         yes     yes         yes               yes               yes
"""

from enum import StrEnum

from toolspeak.runtime.tools.action import Action, Effect


class Approval(StrEnum):
    """Who is asked before a tool changes something."""

    READ_ONLY = "read-only"
    ASK = "ask"
    AUTO = "auto"
    OFF = "off"


class Word(StrEnum):
    """What is said about one call."""

    YES = "yes"
    ASK = "ask"
    NO = "no"


def word(mode: Approval, action: Action) -> Word:
    """Return whether a call of this tool may run."""
    reads = action.effect is Effect.READS
    if mode is Approval.OFF:
        return Word.YES
    if mode is Approval.READ_ONLY and not reads:
        return Word.NO
    free = reads or (mode is Approval.AUTO and action.contained)
    return Word.YES if free and not action.asks else Word.ASK

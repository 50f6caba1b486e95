"""The approval policy: which calls run at once, after a person's approval, or not at all (RUN-5).

mode        reads   contained   reaches further   asks, and reads   asks, and changes
read-only   yes     no          no                ask               no
ask         yes     ask         ask               ask               ask
auto        yes     yes         ask               ask               ask
off         yes     yes         yes               yes               yes
"""

from enum import StrEnum

from toolspeak.agent.tools.action import Action, ToolEffect
from toolspeak.config.shape import Approval


class Ruling(StrEnum):
    """The decision on one call."""

    YES = "yes"
    ASK = "ask"
    NO = "no"


def rule_on(mode: Approval, action: Action) -> Ruling:
    """Return whether a call of this tool may run, in this approval mode."""
    reads = action.effect is ToolEffect.READS
    if mode is Approval.OFF:
        return Ruling.YES
    if mode is Approval.READ_ONLY and not reads:
        return Ruling.NO
    free = reads or (mode is Approval.AUTO and action.contained)
    return Ruling.YES if free and not action.asks else Ruling.ASK

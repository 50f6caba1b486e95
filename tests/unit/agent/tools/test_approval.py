"""Every cell of the approval table (RUN-5)."""

import pytest

from tests.unit.agent.tools.scene import plain
from toolspeak.agent.tools.action import Action, Ruling, ToolEffect, rule_on
from toolspeak.config.shape import Approval

Y, A, N = Ruling.YES, Ruling.ASK, Ruling.NO
COLUMNS = {
    "reads": plain(effect=ToolEffect.READS),
    "contained": plain(contained=True),
    "contained, repeats": plain(contained=True, effect=ToolEffect.REPEATS),
    "further": plain(),
    "further, repeats": plain(effect=ToolEffect.REPEATS),
    "asks, reads": plain(effect=ToolEffect.READS, contained=True, asks=True),
    "asks, contained": plain(contained=True, asks=True),
    "asks, further": plain(asks=True),
    "ends, reads": plain(effect=ToolEffect.READS, ends=True),
    "ends, further": plain(ends=True),
}
TABLE = {
    Approval.READ_ONLY: (Y, N, N, N, N, A, N, N, Y, N),
    Approval.ASK: (Y, A, A, A, A, A, A, A, Y, A),
    Approval.AUTO: (Y, Y, Y, A, A, A, A, A, Y, A),
    Approval.OFF: (Y,) * 10,
}
CELLS = [
    (mode, kind, action, expected)
    for mode, row in TABLE.items()
    for (kind, action), expected in zip(COLUMNS.items(), row, strict=True)
]


@pytest.mark.parametrize(("mode", "kind", "action", "expected"), CELLS, ids=lambda value: str(value)[:20])
def test_who_is_asked_run5(mode: Approval, kind: str, action: Action, expected: Ruling) -> None:
    assert rule_on(mode, action) is expected, kind


def test_the_table_has_every_mode_run5() -> None:
    assert list(TABLE) == list(Approval)
    assert [mode.value for mode in Approval] == ["read-only", "ask", "auto", "off"]

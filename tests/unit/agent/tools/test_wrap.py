"""Tools of others, made to fit (RUN-4, RUN-5)."""

from collections.abc import Callable

import pytest

from testkit.loopback import in_loop
from tests.unit.agent.tools.scene import called, plain, text_of
from toolspeak.agent.tools.action import (
    Action,
    Approval,
    Ruling,
    ToolEffect,
    asked,
    judged,
    only,
    prefixed,
    rule_on,
    without,
)
from toolspeak.errors import BadField

TOOLS = (plain("read", effect=ToolEffect.READS), plain("delete_file"), plain("delete_repo"))


def names(actions: tuple[Action, ...]) -> list[str]:
    return [action.name for action in actions]


def test_some_are_left_out_run4() -> None:
    assert names(only(TOOLS, "read", "*_repo")) == ["read", "delete_repo"]
    assert names(only(TOOLS)) == []
    assert names(without(TOOLS, "delete_*")) == ["read"]
    assert names(without(TOOLS, "create_*")) == ["read", "delete_file", "delete_repo"]
    assert names(without(TOOLS)) == names(TOOLS)


@pytest.mark.parametrize("wrap", [only, without, asked])
def test_a_name_that_nobody_has_is_a_mistake_run5(wrap: Callable[..., object]) -> None:
    with pytest.raises(BadField, match="'delete_fiel' is not one of read, delete_file, delete_repo"):
        wrap(TOOLS, "delete_fiel")


@in_loop
async def test_a_prefix_is_part_of_the_name_run4() -> None:
    github = prefixed(TOOLS, "github__")
    assert names(github) == ["github__read", "github__delete_file", "github__delete_repo"]
    assert names(TOOLS)[0] == "read"
    result = await called(github[0])
    assert (result.name, text_of(result)) == ("github__read", "done")


def test_asked_is_asked_whatever_the_tool_says_run5() -> None:
    assert [rule_on(Approval.AUTO, each) for each in asked(TOOLS, "read")] == [Ruling.ASK] * 3
    assert [rule_on(Approval.ASK, each) for each in TOOLS] == [Ruling.YES, Ruling.ASK, Ruling.ASK]
    assert all(each.asks for each in asked(TOOLS))


def test_the_effect_is_what_the_user_says_run3() -> None:
    assert [each.effect for each in judged(TOOLS, ToolEffect.REPEATS, "delete_*")] == ["reads", "repeats", "repeats"]
    assert {each.effect for each in judged(TOOLS, ToolEffect.READS)} == {ToolEffect.READS}
    with pytest.raises(BadField, match="effect: 'writes' is not one of reads, repeats, once"):
        judged(TOOLS, "writes")

"""The check of one attempted call against the tools and the tool choice of its request."""

from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.toolset.check import CallChecker
from toolspeak.toolset.toolset import ToolSet

TOOLS = ToolSet.of((Tool("look", "", {"type": "object"}), Tool("move", "", {"type": "object"})))


def may_start(name: str, choice: ToolChoice) -> bool:
    return CallChecker(TOOLS, choice, iter(())).may_start(name)


def test_a_call_starts_early_only_if_its_name_needs_no_fix_and_is_the_demanded_one_chk1_chk7() -> None:
    assert may_start("look", ToolChoice())
    assert not may_start("Look", ToolChoice())
    assert may_start("look", ToolChoice(ChoiceMode.NAMED, "look"))
    assert not may_start("move", ToolChoice(ChoiceMode.NAMED, "look"))

"""What `[runs]` lets clients of the gateway do: nothing, unless it says so (RUN-5)."""

import pytest

from toolspeak.config.file import parse_config
from toolspeak.config.shape import Approval, Offer
from toolspeak.errors import BadConfig


def test_nothing_is_offered_by_itself_run5() -> None:
    assert parse_config("", "t.toml", {}).offer == Offer(enabled=False, folders=(), approval=Approval.AUTO)
    assert "off" not in Offer().tools
    assert all(":" not in name for name in Offer().tools), "no server of tools, no function"


def test_all_that_can_be_offered() -> None:
    text = """
        [runs]
        enabled = true
        tools = ["files", "mcp:git"]
        folders = ["/srv/site"]
        approval = "ask"
        rounds = 10
        live = 2
    """
    offered = Offer(True, ("files", "mcp:git"), ("/srv/site",), Approval.ASK, 10, 2)
    assert parse_config(text, "t.toml", {}).offer == offered


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("enabled = 1", "runs.enabled: 1 is not true or false"),
        ('folders = ["site"]', "runs.folders[0]: 'site' is not an absolute path"),
        ('approval = "never"', "runs.approval: 'never' is not one of read-only, ask, auto, off"),
        ("rounds = 0", "runs.rounds: 0 is not an integer of at least 1"),
        ("live = 0", "runs.live: 0 is not an integer of at least 1"),
        ('tools = "files"', "runs.tools: 'files' is not an array of strings"),
    ],
)
def test_what_is_offered_wrong_is_said(line: str, problem: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(f"[runs]\n{line}", "t.toml", {})
    assert str(caught.value) == f"t.toml:2: {problem}"

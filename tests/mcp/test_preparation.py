"""A run gets the tools of a server by its name in the configuration (RUN-1, RUN-4)."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from testkit.scripted_model import called, scripted, text
from tests.mcp.scene import ODD, Person
from toolspeak.agent.mcp.approval_store import AskTool, approve_none
from toolspeak.agent.runs.preparation import prepare_run
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import run_inline
from toolspeak.config.assemble import assemble
from toolspeak.config.file import parse_config
from toolspeak.config.shape import Approval, Config
from toolspeak.engine.agent import Ending
from toolspeak.errors import BadField
from toolspeak.runtime.http_transport import HttpTransport

FILE = """
[upstreams.box]
url = "{url}"
support = "native"
[mcp.odd]
command = {python}
args = {args}
reads = ["echo"]
"""


def configured(url: str, folder: Path) -> Config:
    args = json.dumps(["-I", str(ODD), "plain"])
    file = FILE.format(url=url, python=json.dumps(sys.executable), args=args)
    return parse_config(file, "t.toml", {"XDG_STATE_HOME": str(folder / "state")})


async def worked(config: Config, folder: Path, server: str = "odd", ask: AskTool = approve_none) -> Ending:
    transport = HttpTransport()
    spec = Spec("Say hi.", "tiny", tools=(f"mcp:{server}",), folder=str(folder), approval=Approval.READ_ONLY)
    try:
        async with prepare_run("run", spec, config, assemble(config, transport), ask_tool=ask) as work:
            return await run_inline(work)
    finally:
        await transport.close()


def test_a_run_uses_what_a_person_approved_in_the_middle_of_it_run1_run4(tmp_path: Path) -> None:
    person = Person()
    with scripted() as upstream:
        upstream.answers += [called(("odd__echo", '{"text": "hi"}'), ("odd__die", "{}")), text("It said hi.")]
        ending = asyncio.run(worked(configured(upstream.url, tmp_path), tmp_path, ask=person.ask))
    assert ending.text == "It said hi."
    echoed, died = ending.kept.rounds[0].results
    assert (str(echoed.content), echoed.is_error) == ("(Text(text='hi', vendor=None),)", False)
    assert "was not run: the approval mode is read-only" in str(died.content)
    assert ("echo", "new") in person.asked


def test_where_nobody_can_be_asked_a_run_gets_no_tool_that_nobody_approved_run4(tmp_path: Path) -> None:
    with scripted() as upstream:
        upstream.answers += [text("I have no tools.")]
        asyncio.run(worked(configured(upstream.url, tmp_path), tmp_path))
        assert "odd__echo" not in json.dumps(upstream.bodies)


def test_a_server_that_is_not_configured_is_named_run4(tmp_path: Path) -> None:
    with scripted() as upstream, pytest.raises(BadField, match="'ood' is not one of odd"):
        asyncio.run(worked(configured(upstream.url, tmp_path), tmp_path, "ood"))

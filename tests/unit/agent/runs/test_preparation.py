"""A spec becomes work: its folder, its tools, its model (RUN-3, RUN-4)."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from testkit.loopback import in_loop
from tests.unit.agent.tools.scene import call, text_of
from toolspeak.agent.runs.preparation import built_in_actions, folder_of, import_functions, is_function, prepare_run
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import Work, run_inline
from toolspeak.agent.tools.action import CallContext, Workplace
from toolspeak.config.shape import Approval, Config, Durable
from toolspeak.errors import BadField
from toolspeak.facts.model import UNKNOWN_MODEL
from toolspeak.runtime.directory import Directory, Route
from toolspeak.testing import AsyncScriptedUpstream, Scripted, ScriptedUpstream, called

MODULE = """
from toolspeak import tool

def shout(text: str) -> str:
    "Shout."
    return text.upper()

@tool(effect="reads", name="whispered")
def whisper(text: str) -> str:
    return text.lower()

both = [shout, whisper]
number = 3

class Tools:
    shout = staticmethod(shout)
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module of the user's."""
    (tmp_path / "my_own_tools.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "my_own_tools", raising=False)
    return "my_own_tools"


class OneModel(Directory):
    """One model, which says what a script says."""

    def __init__(self, script: ScriptedUpstream) -> None:
        super().__init__(())
        self.route = Route("scripted", AsyncScriptedUpstream(script), "small", UNKNOWN_MODEL)

    @override
    async def find(self, name: str) -> Route:
        del name
        return self.route

    exactly = find


async def made(spec: Spec, stack: AsyncExitStack, imports: Sequence[str] = (), *script: Scripted) -> Work:
    directory = OneModel(ScriptedUpstream(*script))
    return await stack.enter_async_context(prepare_run("run1", spec, Config(), directory, imports=imports))


@in_loop
async def test_a_run_with_files_works_in_its_folder_run4(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    spec = Spec("Do it.", tools=("files", "final_output"), folder=str(tmp_path / "work"), approval=Approval.AUTO)
    script = (called("write_file", '{"path": "a", "content": "text"}'), called("final_output", '{"summary": "Done."}'))
    async with AsyncExitStack() as stack:
        work = await made(spec, stack, (), *script)
        ending = await run_inline(work)
    assert (ending.status, ending.text, len(ending.kept.rounds)) == ("done", "Done.", 2)
    assert (tmp_path / "work" / "a").read_text() == "text"


@in_loop
async def test_the_output_of_tools_is_as_long_as_the_spec_says_run4(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("word\n" * 1000)
    async with AsyncExitStack() as stack:
        work = await made(Spec("Do it.", tools=("files",), folder=str(tmp_path), output=600), stack)
        result = await work.toolbox.run(call("read_file", path="long"), CallContext())
    assert 300 < len(text_of(result)) <= 600


@in_loop
@pytest.mark.parametrize("field", ["settings", "sampling"])
async def test_what_a_spec_says_wrongly_is_named(tmp_path: Path, field: str) -> None:
    said: dict[str, Any] = {field: {"max_token": 5}}
    async with AsyncExitStack() as stack:
        with pytest.raises(BadField, match=rf"^{field}\.max_token: there is no such thing to say; known are "):
            await made(Spec("Do it.", tools=(), folder=str(tmp_path), **said), stack)


def test_a_run_without_a_folder_has_one_that_the_next_worker_finds_run3(tmp_path: Path) -> None:
    first = folder_of("run-1", Spec("x"))
    (first / "half-done").write_text("text")
    assert first == (tmp_path / "state" / "toolspeak" / "workplaces" / "run-1").resolve()
    assert (folder_of("run-1", Spec("x")) / "half-done").read_text() == "text"
    assert folder_of("run-2", Spec("x")) != first
    assert first.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("id", ["../../etc", "/etc", "", ".", "..", ".hidden", "a/b", "x" * 200, "é", "a\0b"])
def test_an_id_that_somebody_made_up_leads_to_no_other_folder_run4(tmp_path: Path, id: str) -> None:
    made = folder_of(id, Spec("x"))
    assert made.parent == (tmp_path / "state" / "toolspeak" / "workplaces").resolve()
    assert len(made.name) == 64
    assert folder_of(id, Spec("x")) == made


def test_a_folder_must_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(BadField, match="folder: 'work' is not an absolute path"):
        folder_of("1", Spec("x", folder="work"))
    for name in ("file", "nothing"):
        with pytest.raises(BadField, match="is not a folder"):
            folder_of("1", Spec("x", folder=str(tmp_path / name)))
    assert folder_of("1", Spec("x", folder=str(tmp_path / "link"))) == tmp_path.resolve()
    for name in ("XDG_STATE_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadField, match="there is no home to keep one in; name a folder"):
        folder_of("1", Spec("x"))


@in_loop
async def test_functions_are_found_by_their_name_run4(module: str) -> None:
    async with AsyncExitStack() as stack:
        work = await made(Spec("x", tools=(f"{module}:both", "final_output")), stack, ("*",))
        assert [tool.name for tool in work.toolbox.tools] == ["shout", "whispered", "final_output"]
        assert text_of(await work.toolbox.run(call("shout", text="hi"), CallContext())) == "HI"
    assert [each.name for each in import_functions(f"{module}:Tools.shout", [f"{module}:*"])] == ["shout"]


@pytest.mark.parametrize("allowed", [(), ("other:*",), ("my_own_tools:shout", "my_own_tools:b")])
def test_what_is_not_allowed_is_not_even_imported_run5(module: str, allowed: Sequence[str]) -> None:
    async def tried() -> None:
        async with AsyncExitStack() as stack:
            await made(Spec("x", tools=(f"{module}:both",)), stack, allowed)

    with pytest.raises(BadField, match="'my_own_tools:both' may not be imported here; allowed: "):
        asyncio.run(tried())
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("my_own_tools:nobody", "cannot be imported: module 'my_own_tools' has no attribute 'nobody'"),
        ("no_such_module:x", "cannot be imported: No module named 'no_such_module'"),
        ("my_own_tools:number", "3 is neither a function nor an Action"),
    ],
)
def test_a_function_that_is_not_there_is_said(module: str, name: str, complaint: str) -> None:
    del module
    with pytest.raises(BadField, match=complaint):
        import_functions(name, ["*"])


@pytest.mark.parametrize("name", ["a:b", "a.b:c.d", "é:f"])
def test_names_of_functions(name: str) -> None:
    assert is_function(name)
    assert not is_function("mcp:server")


@pytest.mark.parametrize("name", ["a", "a:", ":b", "a:b:c", "a b:c", "a..b:c", "../a:b", "a:b()", "1:b"])
def test_what_is_no_name_of_a_function_is_answered_with_what_there_is(name: str) -> None:
    async def tried() -> None:
        async with AsyncExitStack() as stack:
            await made(Spec("x", tools=(name,)), stack, ("*",))

    assert not is_function(name)
    with pytest.raises(BadField, match=r"is not one of files, shell, final_output, mcp:NAME, module:attribute"):
        asyncio.run(tried())


def test_a_built_in_tool_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert [each.name for each in built_in_actions("final_output", Workplace(tmp_path))] == ["final_output"]
    with pytest.raises(BadField, match="'flies' is not one of files, shell, final_output"):
        built_in_actions("flies", Workplace(tmp_path))


@pytest.mark.parametrize("unsafe", [False, True])
@in_loop
async def test_only_the_configuration_lets_the_shell_out_of_its_sandbox_run5(tmp_path: Path, unsafe: bool) -> None:
    config = Config(runs=Durable(unsafe_shell=unsafe))
    spec = Spec("Do it.", tools=("shell",), folder=str(tmp_path))
    async with prepare_run("run1", spec, config, OneModel(ScriptedUpstream())) as work:
        shell = work.toolbox.action("shell")
    assert shell is not None
    assert shell.contained is not unsafe

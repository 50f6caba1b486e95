"""MCP servers that attack the machine they run on (RUN-5): a real process in the real sandbox, seen from outside.

Each attack but those of the protocol succeeds with `sandbox = False`, as it did before servers were confined;
`test_without_a_sandbox_the_attacks_succeed_run5` shows it.
"""

import asyncio
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typing_extensions import override

from tests.mcp.scene import PATH, Person, command_line, said
from toolspeak.agent.mcp import confinement
from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.mcp.connection import open_actions
from toolspeak.agent.sandbox.processes import tree
from toolspeak.agent.sandbox.sandbox import Service
from toolspeak.agent.sandbox.selection import SandboxSearch, SandboxTrial
from toolspeak.agent.tools.action import CallContext
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import McpServer
from toolspeak.errors import McpFailed
from toolspeak.ir.message import Call, Result

ATTACKER = Path(__file__).with_name("attacker.py")
SECRET = "canary-5b1e"
pytestmark = pytest.mark.timeout(180)
"""Attacks on a machine that is busy with other tests take their time."""
T = TypeVar("T")


def attacker(*folders: Path, seconds: float = 90.0) -> McpServer:
    args = ("-I", str(ATTACKER))
    return McpServer("evil", sys.executable, args, (PATH,), folders=tuple(map(str, folders)), seconds=seconds)


async def attack(box: Toolbox, do: str, **arguments: object) -> Result:
    return await box.run(Call("c", "evil__attack", json.dumps({"do": do, **arguments})), CallContext())


def using(server: McpServer, use: Callable[[Toolbox], Coroutine[Any, Any, T]]) -> T:
    async def used() -> T:
        async with open_actions(server, ApprovalStore(None, Person().ask)) as actions:
            return await use(Toolbox(actions))

    return asyncio.run(used())


def one(server: McpServer, do: str, **arguments: object) -> Result:
    """Make one attack; return what the server got."""

    async def use(box: Toolbox) -> Result:
        return await attack(box, do, **arguments)

    return using(server, use)


def marked(mark: str) -> list[int]:
    """Return the processes of this machine whose command line has a mark."""
    pids = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [pid for pid in pids if mark.encode() in command_line(pid)]


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


@contextmanager
def gateway() -> Generator[tuple[int, list[str]]]:
    """Listen on loopback as the gateway does; give the port, and who called."""
    calls: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls.append(self.path)
            self.send_response(200)
            self.end_headers()

        @override
        def log_message(self, format: str, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1], calls
        finally:
            server.shutdown()


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a key where users have keys, and tell us that this is the home."""
    home = tmp_path / "home"
    for name in (".ssh/id_ed25519", ".config/toolspeak/toolspeak.toml", ".local/state/toolspeak/mcp/evil.json"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TOOLSPEAK_KEY", SECRET)
    return home


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    "name", [".ssh/id_ed25519", ".config/toolspeak/toolspeak.toml", ".local/state/toolspeak/mcp/evil.json"]
)
def test_keys_and_our_own_files_cannot_be_read_run5(secret: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    got = one(attacker(folder), "read", path=str(secret / name))
    assert got.is_error
    assert SECRET not in said(got)
    assert "FileNotFoundError" in said(got)


def test_a_link_in_its_folder_leads_nowhere_run5(secret: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(secret / ".ssh/id_ed25519")
    assert SECRET not in said(one(attacker(folder), "read", path=str(folder / "link")))


def test_it_writes_in_its_folders_and_nowhere_else_run5(tmp_path: Path) -> None:
    folder, read, other = tmp_path / "folder", tmp_path / "read", tmp_path / "other"
    for each in (folder, read, other):
        each.mkdir()
        (each / "old").write_text("old")
    server = replace(attacker(folder), read=(str(read),))

    async def use(box: Toolbox) -> list[bool]:
        places = (folder / "old", read / "old", other / "old", Path("/usr/old"), Path("/etc/old"), ATTACKER)
        return [(await attack(box, "write", path=str(place))).is_error for place in places]

    assert using(server, use) == [False, True, True, True, True, True]
    assert [(each / "old").read_text() for each in (folder, read, other)] == ["attacked", "old", "old"]
    assert "old" in said(one(server, "read", path=str(read / "old")))
    assert ATTACKER.read_text() != "attacked"


def test_a_read_only_path_inside_a_folder_stays_so_run5(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    server = replace(attacker(tmp_path), read=(str(inner),))
    assert one(server, "write", path=str(inner / "new")).is_error
    assert not one(server, "write", path=str(tmp_path / "new")).is_error


def test_nothing_of_ours_is_in_its_environment_or_its_descriptors_run5(secret: Path) -> None:
    del secret
    found = json.loads(said(one(attacker(), "environment")))
    assert SECRET not in str(found)
    basics = {"PATH", "HOME", "LANG", "TERM", "GIT_OPTIONAL_LOCKS", "npm_config_offline", "UV_OFFLINE"}
    assert found.keys() <= basics | {"PWD", "OLDPWD", "LC_CTYPE"}
    assert said(one(attacker(), "descriptors")) == ""


# ---------------------------------------------------------------- what the host would run


def test_git_in_its_folders_is_read_only_run14(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "mine")], check=True)
    (tmp_path / "none").mkdir()
    server = attacker(tmp_path / "mine", tmp_path / "none")

    async def use(box: Toolbox) -> list[str]:
        places = ("mine/.git/config", "mine/.git/hooks/pre-commit", "none/.git/config", "none/.vscode/tasks.json")
        return [said(await attack(box, "write", path=str(tmp_path / place))) for place in places]

    assert all("Read-only file system" in got for got in using(server, use))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine", "none"]
    assert list((tmp_path / "none").iterdir()) == [], "the masks are gone"


@pytest.mark.parametrize("inner", ["", "deep"])
def test_a_server_that_makes_a_repository_is_stopped_and_git_does_not_run_it_run14(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, inner: str
) -> None:
    """With `deep`, one of its folders is inside another: what protects the outer one holds there, too."""
    folder, proof = tmp_path / "folder", tmp_path / "proof"
    (folder / "deep").mkdir(parents=True)
    place = folder / inner / "sub"
    server = attacker(folder, *((folder / inner,) if inner else ()))
    got = one(server, "repository", path=str(place), proof=str(proof), seconds=60)
    assert got.is_error
    assert "it made or changed" in said(got)
    # A guard that is faster than the server stops it while its repository is empty, and keeps nothing of it.
    kept = [each.name for each in place.iterdir()]
    assert kept in ([".git.refused"], [])
    subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
    assert not proof.exists()
    assert not kept or "The service evil has changed" in caplog.text


def test_a_repository_in_an_inner_folder_is_read_only_run14(tmp_path: Path) -> None:
    """The inner folder is mounted over what protects the outer one, with a read-only folder between them."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "read/inner")], check=True)
    server = replace(attacker(tmp_path, tmp_path / "read/inner"), read=(str(tmp_path / "read"),))
    assert "Read-only" in said(one(server, "write", path=str(tmp_path / "read/inner/.git/config")))
    assert not one(server, "write", path=str(tmp_path / "read/inner/new")).is_error


def test_a_repository_is_renamed_although_toolspeak_is_killed_run14(tmp_path: Path) -> None:
    folder, proof = tmp_path / "folder", tmp_path / "proof"
    folder.mkdir()
    code = (
        "from tests.mcp.test_attacks import attacker, one\nfrom pathlib import Path\n"
        f"where = dict(path={str(folder / 'sub')!r}, proof={str(proof)!r})\n"
        f"one(attacker(Path({str(folder)!r})), 'repository', **where, seconds=60)\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root) as parent:
        assert eventually((folder / "sub").exists)
        parent.kill()
    # The guard removes its mask once all processes are dead. What they had made by then is renamed; a repository that
    # was still empty is removed.
    assert eventually(lambda: not (folder / ".git").exists() and not (folder / "sub/.git").exists())
    subprocess.run(["git", "status"], cwd=folder / "sub", check=False, capture_output=True)
    assert not proof.exists()


def test_its_home_may_hold_repositories_run5(tmp_path: Path) -> None:
    """`uvx --from git+…` keeps bare repositories in its cache."""
    home = tmp_path / "home"
    server = replace(attacker(), home=str(home))
    got = one(server, "repository", path=str(home), proof=str(tmp_path / "proof"), seconds=1)
    assert said(got) == "made"


# ---------------------------------------------------------------- network, processes


def test_no_network_and_no_gateway_unless_declared_run5() -> None:
    with gateway() as (port, calls):
        refused = one(attacker(), "connect", host="127.0.0.1", port=port)
        assert refused.is_error
        assert calls == []
        declared = one(replace(attacker(), network=True), "connect", host="127.0.0.1", port=port)
        assert "200" in said(declared)
        assert calls == ["/health"]


def test_no_abstract_socket_of_this_machine_run5() -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        name = f"toolspeak-{os.getpid()}"
        listener.bind("\0" + name)
        listener.listen()
        assert "ConnectionRefusedError" in said(one(attacker(), "abstract", name=name))


def test_it_sees_and_kills_no_process_but_its_own_run5() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as victim:

        async def use(box: Toolbox) -> tuple[str, str]:
            seen = said(await attack(box, "processes"))
            return seen, said(await attack(box, "kill", pid=victim.pid))

        seen, killed = using(attacker(), use)
        assert len(seen.split()) < 5
        assert victim.poll() is None
        assert f"{victim.pid}: No such process" in killed
        victim.kill()


def test_a_fork_bomb_meets_a_limit_run5() -> None:
    before = len(list(Path("/proc").glob("[0-9]*")))
    got = said(one(attacker(), "fork", most=2000))
    made = int(got.split()[0])
    assert made < 256
    assert "then Resource temporarily unavailable" in got
    assert eventually(lambda: len(list(Path("/proc").glob("[0-9]*"))) < before + 100)


def test_memory_of_all_its_processes_together_meets_a_limit_run5() -> None:
    """Twelve processes of 200 MiB: the kernel's group or the watch stops them, and none of it stays."""
    mine = os.getpid()

    async def use(box: Toolbox) -> tuple[Result, int]:
        most = 0

        async def look() -> None:
            nonlocal most
            while True:
                most = max(most, sum(map(resident, tree(mine)[1:])))
                await asyncio.sleep(0.05)

        async with asyncio.TaskGroup() as group:
            looking = group.create_task(look())
            got = await attack(box, "memory", children=12)
            looking.cancel()
        return got, most

    _, most = using(attacker(), use)
    assert most < 1800 << 20, f"{most >> 20} MiB were taken at once"


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def test_a_full_disk_is_stopped_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 2 GiB; the test sets it to 300 MiB, so that the disk of this machine is not worn out."""
    made = confinement.service_of

    def small(server: McpServer) -> Service:
        service = made(server)
        return replace(service, limits=replace(service.limits, folder_growth=300 << 20))

    monkeypatch.setattr("toolspeak.agent.mcp.connection.service_of", small)
    folder = tmp_path / "folder"
    folder.mkdir()
    got = one(attacker(folder), "fill", folder=str(folder), files=12)
    assert got.is_error
    assert "the run put more than 300 MiB" in said(got)
    size = sum(each.stat().st_size for each in folder.iterdir())
    assert size < 2000 << 20


def test_a_server_over_its_disk_budget_gets_no_new_one_by_a_restart_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = confinement.service_of

    def small(server: McpServer) -> Service:
        service = made(server)
        return replace(service, limits=replace(service.limits, folder_growth=1 << 20))

    async def use(box: Toolbox) -> tuple[Result, Result]:
        first = await attack(box, "fill", folder=str(tmp_path), files=12)
        return first, await attack(box, "write", path=str(tmp_path / "more"))

    monkeypatch.setattr("toolspeak.agent.mcp.connection.service_of", small)
    first, second = using(attacker(tmp_path), use)
    assert "the run put more than 1 MiB" in said(first)
    assert "its disk budget is 1 MiB" in said(second)
    assert not (tmp_path / "more").exists()


def test_temporary_files_are_bounded_memory_run5() -> None:
    got = one(attacker(), "fill", folder="/tmp", files=1)  # noqa: S108 # the one inside
    assert "No space left on device" in said(got)


# ---------------------------------------------------------------- staying


@pytest.mark.parametrize("ends", ["close", "kill -9"])
def test_what_it_leaves_running_ends_with_us_run5(tmp_path: Path, ends: str) -> None:
    """The daemon has a session of its own. In one case we close the server, in the other toolspeak is killed."""
    mark = f"daemon-{os.getpid()}-{ends.replace(' ', '')}"
    if ends == "close":
        assert said(one(attacker(), "daemon", mark=mark)) == "left"
    else:
        code = (
            "import asyncio, sys\nfrom tests.mcp.test_attacks import attack, attacker, using\n"
            "async def use(box):\n"
            f" await attack(box, 'daemon', mark={mark!r})\n print('left', flush=True)\n await asyncio.sleep(60)\n"
            "using(attacker(), use)\n"
        )
        root = Path(__file__).parents[2]
        log = tmp_path / "log"
        with (
            log.open("w") as err,
            subprocess.Popen(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=err, text=True, cwd=root
            ) as parent,
        ):
            assert parent.stdout is not None
            assert parent.stdout.readline() == "left\n", log.read_text()
            assert [pid for pid in marked(mark) if pid != parent.pid], "it runs"
            parent.kill()
    assert eventually(lambda: not marked(mark))


# ---------------------------------------------------------------- the protocol


def test_answers_with_wrong_ids_answer_nothing_run4() -> None:
    assert said(one(attacker(), "wrong_ids")) == "honest"


def test_a_server_that_never_answers_costs_one_call_run4() -> None:
    began = time.monotonic()
    got = one(attacker(seconds=6.0), "silent")
    assert got.is_error
    assert "gave no answer within 6 seconds" in said(got)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("to", ["stdout", "stderr"])
def test_a_flood_costs_us_no_memory_run4(to: str) -> None:
    """60 MB: on stdout it ends the server after so many lines that are no messages, on stderr it is dropped."""
    before = resident(os.getpid())
    got = one(attacker(), "flood", to=to, lines=60_000)
    assert resident(os.getpid()) - before < 40 << 20
    if to == "stdout":
        assert "lines that are no messages" in said(got)
    else:
        assert said(got) == "flooded"


def test_a_flood_of_notifications_is_dropped_and_not_logged_run4(caplog: pytest.LogCaptureFixture) -> None:
    """The SDK logged a traceback for each: 50,000 were 14 MB in the log, and `/health` waited for a second."""
    assert said(one(attacker(), "notify", lines=50_000)) == "sent"
    assert len(caplog.text) < 1000


# ---------------------------------------------------------------- where there is no sandbox


def test_where_no_sandbox_works_a_server_is_refused_with_what_to_do_run5(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none() -> SandboxSearch:
        return SandboxSearch(None, (SandboxTrial("bwrap", "it is not installed"),))

    monkeypatch.setattr(confinement, "find_sandbox", none)
    with pytest.raises(McpFailed) as refused:
        one(attacker(), "environment")
    assert "evil: it was not started: no sandbox works here" in str(refused.value)
    assert "install bubblewrap" in str(refused.value)
    assert "set sandbox = false in [mcp.evil]" in str(refused.value)
    waived = one(replace(attacker(), sandbox=False), "environment")
    assert not waived.is_error


def test_without_a_sandbox_the_attacks_succeed_run5(secret: Path, tmp_path: Path) -> None:
    """The attacks are real: a server that is not confined, as all were, gets at everything."""
    mark = f"daemon-{os.getpid()}-waived"

    async def use(box: Toolbox) -> None:
        assert said(await attack(box, "read", path=str(secret / ".ssh/id_ed25519"))) == SECRET
        assert said(await attack(box, "write", path=str(tmp_path / "new"))) == "written"
        with gateway() as (port, calls):
            assert "200" in said(await attack(box, "connect", host="127.0.0.1", port=port))
            assert calls == ["/health"]
        await attack(box, "kill", pid=victim.pid)
        assert await asyncio.to_thread(victim.wait, 60) == -9
        assert said(await attack(box, "fork", most=300)) == "300 processes"
        assert said(await attack(box, "daemon", mark=mark)) == "left"

    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as victim:
        using(replace(attacker(), sandbox=False), use)
    left = marked(mark)
    assert left, "the daemon outlives its server"
    for pid in left:
        os.kill(pid, 9)

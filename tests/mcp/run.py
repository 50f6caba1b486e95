"""Real MCP servers, from PyPI and npm, used by runs: confined over stdio, over HTTP, and killed in the middle.

The model is a script; everything else is real. The last line is JSON.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from pathlib import Path
from typing import Any

from testkit.meter import children
from testkit.report import close
from tests.mcp.install import install, program, servers
from tests.mcp.scene import PATH, Person, said, work_on
from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.mcp.connection import open_actions
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import McpServer
from toolspeak.engine.agent import Ending, Status
from toolspeak.ir.message import Image
from toolspeak.testing import Scripted, called

CALLS: list[str] = []
"""What every call gave."""
Steps = Sequence[Scripted]


async def worked(server: McpServer, folder: Path, script: Steps) -> list[str]:
    """Let a run work by a script; return what its calls gave, and check that it came to its end."""
    async with open_actions(server, ApprovalStore(folder / "state", Person().ask)) as actions:
        ending, model = await work_on(Toolbox(actions, 20_000), script)
    check(ending.status is Status.DONE, f"{ending.status} {ending.reason}")
    check(model.requests[-1].messages[-1].role == "tool", "the last turn saw the results")
    return results(ending)


def results(ending: Ending) -> list[str]:
    found = [result for each in ending.kept.rounds for result in each.results]
    images = ["image " * any(isinstance(each, Image) for each in result.content) for result in found]
    told = [f"{'error: ' * result.is_error}{image}{said(result)}" for result, image in zip(found, images, strict=True)]
    CALLS.extend(told)
    return told


def check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


# ---------------------------------------------------------------- over stdio


async def time_server(folder: Path) -> None:
    server = McpServer("time", program("time"), env=(PATH,))
    asked = '{"source_timezone": "Europe/Oslo", "time": "16:30", "target_timezone": "Asia/Tokyo"}'
    wrong = called("time__get_current_time", '{"timezone": "Nowhere"}', "c2")
    converted, failed = await worked(
        server, folder, [called("time__convert_time", asked), wrong, "Half past midnight."]
    )
    check("Asia/Tokyo" in converted, converted)
    check(failed.startswith("error: "), failed)


async def git_server(folder: Path) -> None:
    repository = folder / "repository"
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(repository)], check=True)
    (repository / "new.txt").write_text("new")
    server = McpServer("git", program("git"), ("--repository", str(repository)), (PATH,), folders=(str(repository),))
    (status,) = await worked(server, folder, [called("git__git_status", f'{{"repo_path": "{repository}"}}'), "One."])
    check("new.txt" in status, status)


async def file_server(folder: Path) -> None:
    root = folder / "files"
    root.mkdir()
    allowed = (str(root), str(folder))  # it believes that it may read more than the sandbox shows
    server = McpServer(
        "files", program("filesystem"), allowed, (PATH,), folders=(str(root),), reads=("read_text_file",)
    )
    (folder / "secret.txt").write_text("secret")
    written = called("files__write_file", f'{{"path": "{root}/a.txt", "content": "hello"}}')
    read = called("files__read_text_file", f'{{"path": "{root}/a.txt"}}', "c2")
    outside = called("files__read_text_file", '{"path": "/etc/passwd"}', "c3")
    unseen = called("files__read_text_file", f'{{"path": "{folder}/secret.txt"}}', "c4")
    _, text, refused, hidden = await worked(server, folder, [written, read, outside, unseen, "Done."])
    check((root / "a.txt").read_text() == "hello", "the file is there")
    check(text == "hello", text)
    check(refused.startswith("error: "), refused)
    check(hidden.startswith("error: ") and "ENOENT" in hidden, hidden)


# ---------------------------------------------------------------- over HTTP


@contextlib.contextmanager
def everything_at(port: int) -> Generator[subprocess.Popen[bytes]]:
    """Start a server over HTTP, and end it."""
    command = ["node", program("everything"), "streamableHttp"]
    env = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def http_server(folder: Path) -> None:
    port = free_port()
    server = McpServer("all", url=f"http://127.0.0.1:{port}/mcp")
    script = [
        called("all__echo", '{"message": "over HTTP"}'),
        called("all__get-sum", '{"a": 2, "b": 40}', "c2"),
        called("all__get-tiny-image", "{}", "c3"),
        called("all__get-structured-content", '{"location": "Chicago"}', "c4"),
        "Seen.",
    ]
    with everything_at(port):
        echo, total, image, weather = await worked(server, folder, script)
    check("over HTTP" in echo, echo)
    check("42" in total, total)
    check(image.startswith("image "), image[:80])
    check("temperature" in weather, weather)


async def http_server_killed(folder: Path) -> None:
    """Kill it between two calls, and start another in its place, which knows no session of ours."""
    port = free_port()
    server = McpServer("all", url=f"http://127.0.0.1:{port}/mcp")
    echo = [called("all__echo", '{"message": "hi"}'), "Said."]
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(everything_at(port))
        async with open_actions(server, ApprovalStore(folder / "state", Person().ask)) as actions:
            box = Toolbox(actions)
            before, _ = await work_on(box, echo)
            first.kill()
            first.wait()
            away, _ = await work_on(box, echo)
            stack.enter_context(everything_at(port))
            after, _ = await work_on(box, echo)
    found = [results(each)[0] for each in (before, away, after)]
    check("hi" in found[0] and "hi" in found[2] and not found[2].startswith("error"), str(found))
    check(found[1].startswith("error: "), found[1])


# ---------------------------------------------------------------- killed


async def stdio_server_killed(folder: Path) -> None:
    """Kill it between two calls and during one; only the call that was on its way is an error."""
    server = McpServer("all", "node", (program("everything"),), (PATH,))
    async with open_actions(server, ApprovalStore(folder / "state", Person().ask)) as actions:
        box = Toolbox(actions)
        (first,) = children(os.getpid())
        os.kill(first, signal.SIGKILL)
        await asyncio.sleep(0.5)
        between, _ = await work_on(box, [called("all__echo", '{"message": "again"}'), "Said."])
        (second,) = children(os.getpid())
        async with asyncio.TaskGroup() as group:
            slow = called("all__trigger-long-running-operation", '{"duration": 30, "steps": 3}')
            during = group.create_task(work_on(box, [slow, called("all__echo", '{"message": "back"}', "c2"), "Said."]))
            await asyncio.sleep(2)
            os.kill(second, signal.SIGKILL)
    check("again" in results(between)[0], "killed between two calls")
    died, back = results(during.result()[0])
    check(died.startswith("error: ") and "died while the call ran" in died, died)
    check("back" in back, back)
    check(first != second and not children(os.getpid()), "nothing is left")


CASES: dict[str, Callable[[Path], Coroutine[Any, Any, None]]] = {
    "time, PyPI, stdio": time_server,
    "git, PyPI, stdio": git_server,
    "filesystem, npm, stdio": file_server,
    "everything, npm, HTTP": http_server,
    "everything, npm, stdio, killed between calls and during one": stdio_server_killed,
    "everything, npm, HTTP, killed and started anew": http_server_killed,
}


def main() -> None:
    """Install, then try them one behind the other."""
    install()
    passed = 0
    began = time.perf_counter()
    for name, case in CASES.items():
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                asyncio.run(case(Path(folder)))
                passed += 1
                fault = ""
            except Exception as error:  # noqa: BLE001 # the next one is tried all the same
                fault = f"  {type(error).__name__}: {error}"
        print(f"{'ok  ' if not fault else 'FAIL'} {time.perf_counter() - started:5.1f} s  {name}{fault}", flush=True)
    versions = {name: pinned.version for name, pinned in servers().items()}
    seconds = round(time.perf_counter() - began, 1)
    ok = passed == len(CASES)
    close("mcp-servers", ok=ok, cases=len(CASES), passed=passed, calls=len(CALLS), servers=versions, seconds=seconds)


if __name__ == "__main__":
    main()

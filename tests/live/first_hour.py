"""`just first-hour`: from the wheel to a file that Claude Code has written, in three commands, timed.

1. `pip install` of the wheel, in an empty virtual environment with an empty home.
2. `toolspeak up` with a real model.
3. `toolspeak launch claude`, which must write a file with that model. If the model cannot, in `--minutes` at most, the
   scripted model of the client tests does it, and the page says so.

The outputs are kept in bench/results/first-hour.json and docs/first-hour.md. The model and Claude Code are fetched
before the time is taken.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
import venv
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from testkit.llama_models import MODELS, path_of
from testkit.llama_server import free_port
from testkit.report import close
from tests.clients.drive import PATHS
from tests.clients.install import install, pins
from tests.clients.rows import node
from tests.clients.script import prompt_of
from tests.live.first_hour_page import PAGE, page
from tests.live.launch import CODE, scripted_upstream

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results" / "first-hour.json"
TASK = "Create a file hello.txt that says hello."
READY_S = 180.0
TRIES = 3
"""Small models answer by chance: where the first answer only explains how to do it, the second may do it."""
SHOWN = 30
"""Lines of an output that are kept."""
LISTENS = "toolspeak listens on "


@dataclass(frozen=True, slots=True)
class Step:
    """One command, with what it printed."""

    title: str
    about: str
    command: str
    output: str
    seconds: float
    ok: bool
    counts: bool = True
    """Its time is part of the sum; not that of a model that failed."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """An empty environment."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        programs = [self.folder / "venv" / "bin", pins()["claude-code"].folder / "node_modules" / ".bin"]
        paths = [*map(str, programs), str(Path(node()).parent), PATHS]
        return {
            "PATH": os.pathsep.join(paths),
            "HOME": str(self.folder / "home"),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "TOOLSPEAK_PORT": str(free_port()),  # others on this machine may use the default
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "API_TIMEOUT_MS": "3000000",
        }

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def shown(self, text: str) -> str:
        """Return an output without the paths of this run, and without its middle if it is long."""
        lines = text.replace(str(self.folder), "~").replace("~/home", "~").splitlines()
        if len(lines) > SHOWN:
            lines = [*lines[: SHOWN // 2], "…", *lines[-SHOWN // 2 :]]
        return "\n".join(lines)


def install_wheel(sandbox: Sandbox) -> Step:
    """Install the wheel with the package that runs models."""
    [wheel] = (ROOT / "dist").glob("*.whl")
    began = time.monotonic()
    venv.create(sandbox.folder / "venv", with_pip=True)
    command = [str(sandbox.folder / "venv/bin/pip"), "install", "--quiet", f"{wheel}[llama]"]
    environ = {**os.environ, "HOME": str(sandbox.folder / "home"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    said = ended.stdout + ended.stderr
    about = "The extra `llama` installs the server that runs a model file."
    return Step(
        "Install",
        about,
        "pip install 'toolspeak[llama]'",
        sandbox.shown(said),
        time.monotonic() - began,
        ended.returncode == 0,
    )


def run_model(sandbox: Sandbox, env: dict[str, str], model: Path) -> tuple[Step, "subprocess.Popen[bytes]"]:
    """Start the model and wait until the gateway listens."""
    log = sandbox.folder / "up.log"
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["toolspeak", "up", str(model)],
            cwd=sandbox.work,
            env=env,
            executable=sandbox.folder / "venv/bin/toolspeak",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    while process.poll() is None and LISTENS not in log.read_text() and time.monotonic() - began < READY_S:
        time.sleep(0.1)
    took = time.monotonic() - began
    time.sleep(1)  # the lines after that one
    said = log.read_text()
    about = "It runs in its own terminal."
    return Step("Run a model", about, f"toolspeak up {model.name}", sandbox.shown(said), took, LISTENS in said), process


def launch(sandbox: Sandbox, env: dict[str, str], task: str, limit_s: float, *words: str) -> Step:
    """Let Claude Code do the task; words before `--` are for toolspeak, those after it for Claude Code."""
    words = ("claude", *words, "--dangerously-skip-permissions", "-p", task)
    began = time.monotonic()
    process = subprocess.Popen(
        [str(sandbox.folder / "venv/bin/toolspeak"), "launch", *words],
        cwd=sandbox.work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            said = f"{process.communicate()[0]}stopped after {limit_s:.0f} s"
    command = " ".join(["toolspeak launch", *words[:-1], f'"{task}"'])
    about = (
        "Run it in the folder of the task. Without the arguments after `--`, Claude Code opens its own screen. "
        "`--tools Write` offers the model only that tool, so that the model has 2,000 tokens to read instead of 12,000."
        if "--tools" in words
        else "The same, with the scripted model."
    )
    ok = process.returncode == 0
    return Step("Launch an agent", about, sandbox.shown(command), sandbox.shown(said), time.monotonic() - began, ok)


def written(sandbox: Sandbox, name: str) -> str:
    path = sandbox.work / name
    return path.read_text(errors="replace") if path.exists() else ""


def try_all(sandbox: Sandbox, model: str, limit_s: float) -> tuple[list[Step], str]:
    """Run the three commands; return what they printed, and which model has written the file, if one has."""
    for name in ("home", "work"):
        (sandbox.folder / name).mkdir()
    subprocess.run(["git", "init", "--quiet", str(sandbox.work)], check=True)
    env = sandbox.env
    steps = [install_wheel(sandbox)]
    up, process = run_model(sandbox, env, path_of(model))
    steps.append(up)
    try:
        for number in range(1, TRIES + 1):
            steps.append(launch(sandbox, env, TASK, limit_s, "--", "--tools", "Write"))
            print(steps[-1].output, flush=True)
            if "hello" in written(sandbox, "hello.txt").lower():
                return steps, f"the real model, {model}, on attempt {number} of at most {TRIES}"
            steps[-1] = replace(steps[-1], title=f"Launch an agent, attempt {number} with the real model")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    steps[2:] = [replace(step, counts=False) for step in steps[2:]]
    with scripted_upstream() as url:
        task = prompt_of(CODE, str(sandbox.work))
        steps.append(launch(sandbox, env, task, limit_s, "--upstream", url, "--mode", "force", "--"))
    by = f"the scripted model of the client tests, because the real one, {model}, did not do it"
    return steps, by if CODE in written(sandbox, "out.txt") else ""


def main() -> None:
    """Try it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", choices=MODELS)
    parser.add_argument("--minutes", type=float, default=25, help="for the real model")
    parser.add_argument("--page", action="store_true", help="only write the page, from the results that are kept")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(json.loads(RESULTS.read_text())), encoding="utf-8")
        return
    install(["claude-code"])
    path_of(options.model)
    with tempfile.TemporaryDirectory() as folder:
        steps, by = try_all(Sandbox(Path(folder)), options.model, options.minutes * 60)
    for step in steps:
        print(f"{'ok' if step.ok else 'FAILED':7}{step.seconds:7.1f} s  {step.command}")
    kept = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "by": by, "steps": [asdict(step) for step in steps]}
    if by:
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(page(kept), encoding="utf-8")
    close("first-hour", ok=bool(by), by=by, seconds=round(sum(step.seconds for step in steps), 1))


if __name__ == "__main__":
    main()

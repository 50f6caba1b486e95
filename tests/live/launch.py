"""`just launch-live`: real agents, started by `toolspeak launch`, write a file with a model that has no tool calling.

The model is scripted; the agents are those of the client tests. Each must write the file, show the model's last words,
end with status 0, and leave the user's files and the temporary folder as they were (LAUNCH-1, LAUNCH-3, LAUNCH-4).
`--only NAME` runs one agent.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from testkit.llama_server import free_port
from testkit.report import close
from tests.clients.drive import PATHS
from tests.clients.install import install, pins
from tests.clients.rows import node
from tests.clients.script import content_of, prompt_of

LIMIT_S = 180.0
CODE = "1a2b3c4d"
QUIET = {"DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1", "PI_OFFLINE": "1"}
ONCE = {
    "claude": ("claude-code", ("-p", "{prompt}", "--dangerously-skip-permissions")),
    "codex": ("codex", ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{prompt}")),
    "pi": ("pi", ("-p", "{prompt}")),
}
USERS = (".claude/settings.json", ".codex/config.toml", ".pi/agent/settings.json")
"""Files of the user, which must stay as they are. The agents read them."""

OWN_ENTRY = re.compile(r'\[projects\."[^"]+"\]\ntrust_level = "trusted"\n')
"""Codex itself notes that it may work in a folder, however it is started."""


@contextmanager
def scripted_upstream() -> Generator[str]:
    """Run the scripted model, and give its address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.clients.upstream", "--mode", "ignores", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline(), "the scripted model did not start"
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def environment(pin: str, home: Path, temporary: Path) -> dict[str, str]:
    """Nothing of ours: no proxies, no keys."""
    program = pins()[pin].folder / "node_modules" / ".bin"
    paths = f"{program}:{Path(node()).parent}:{Path(sys.executable).parent}:{PATHS}"
    return {"PATH": paths, "HOME": str(home), "TMPDIR": str(temporary), "TERM": "dumb", "LANG": "C.UTF-8", **QUIET}


def faults(name: str, upstream: str, folder: Path) -> list[str]:
    """Launch an agent once; return what is wrong."""
    pin, once = ONCE[name]
    home, work, temporary = (folder / each for each in ("home", "work", "tmp"))
    for each in (home, work, temporary):
        each.mkdir(parents=True)
    for user in USERS:
        (home / user).parent.mkdir(parents=True, exist_ok=True)
        (home / user).write_text("{}\n" if user.endswith(".json") else "# mine\n")
    before = _digests(home)
    subprocess.run(["git", "init", "--quiet", str(work)], check=True)
    words = [word.format(prompt=prompt_of(CODE, str(work))) for word in once]
    command = [sys.executable, "-m", "toolspeak", "launch", name, "--upstream", upstream, "--mode", "force"]
    ended = subprocess.run(
        [*command, "--", *words],
        cwd=work,
        env=environment(pin, home, temporary),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    print(ended.stderr.strip()[-600:], ended.stdout.strip()[-300:], sep="\n", flush=True)
    written = work / "out.txt"
    checks = {
        f"exit status {ended.returncode}": ended.returncode == 0,
        "the file is not there, or not as the model wrote it": written.exists()
        and written.read_text().rstrip() == content_of(CODE).rstrip(),
        "the model's last words are not shown": f"fin-{CODE}" in ended.stdout,
        "a file of the user has changed": _digests(home) == before,
        "the temporary folder is still there": not list(temporary.glob("toolspeak-launch-*")),
    }
    return [fault for fault, holds in checks.items() if not holds]


def _digests(home: Path) -> dict[str, str]:
    texts = {user: OWN_ENTRY.sub("", (home / user).read_text()) for user in USERS}
    return {user: hashlib.sha256(text.encode()).hexdigest() for user, text in texts.items()}


def main() -> None:
    """Launch all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*ONCE])
    wanted = [only] if (only := parser.parse_args().only) else [*ONCE]
    install(ONCE[name][0] for name in wanted)
    began = time.monotonic()
    found: dict[str, list[str]] = {}
    os.environ.pop("TOOLSPEAK_KEY", None)
    with tempfile.TemporaryDirectory() as folder, scripted_upstream() as upstream:
        for name in wanted:
            started = time.monotonic()
            found[name] = faults(name, upstream, Path(folder) / name)
            print(f"{'FAIL' if found[name] else 'ok'}  {name}  {time.monotonic() - started:.1f} s  {found[name]}")
    ok = not any(found.values())
    close("launch", ok=ok, agents=len(found), seconds=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()

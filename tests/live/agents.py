"""How each agent is pointed at the gateway for one task with a small, slow model: short answers, long patience."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.install import pins

MOST_TOKENS = 512
"""Of one answer: a model that has lost itself would go on to the end of its context."""
CONTEXT_TOKENS = 32_768
MOST_TURNS = 8
PATIENCE_MS = 3_000_000


@dataclass(frozen=True, slots=True)
class Start:
    """A command, with its environment and the files that must be in its home."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])


def pi(url: str, model: str, task: str) -> Start:
    """Run pi: four tools, and the shortest prompt."""
    known = {
        "id": model,
        "name": model,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": CONTEXT_TOKENS,
        "maxTokens": MOST_TOKENS,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": f"{url}/v1", "apiKey": "none", "api": "openai-completions", "models": [known]}
    files = {".pi/agent/models.json": json.dumps({"providers": {"toolspeak": provider}})}
    command = (_program("pi", "pi"), "--provider", "toolspeak", "--model", model, "-p", task)
    return Start(command, {"PI_OFFLINE": "1"}, files)


def goose(url: str, model: str, task: str) -> Start:
    """Run goose: some ten tools."""
    env = {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": model,
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
        "GOOSE_CONTEXT_LIMIT": str(CONTEXT_TOKENS),
        "GOOSE_MAX_TOKENS": str(MOST_TOKENS),
        "GOOSE_MAX_TURNS": str(MOST_TURNS),
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "none",
        "OPENAI_TIMEOUT": str(PATIENCE_MS // 1000),
    }
    program = pins()["goose"].folder / "node_modules/@aaif/goose-binary-linux-x64/bin/goose"
    return Start((str(program), "run", "--no-session", "--with-builtin", "developer", "-t", task), env)


def claude_code(url: str, model: str, task: str) -> Start:
    """Run Claude Code, which has the longest prompt."""
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": "none",
        "ANTHROPIC_MODEL": model,
        "ANTHROPIC_SMALL_FAST_MODEL": model,
        "API_TIMEOUT_MS": str(PATIENCE_MS),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(MOST_TOKENS),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    flags = ("--dangerously-skip-permissions", "--max-turns", str(MOST_TURNS))
    return Start((_program("claude-code", "claude"), "-p", task, *flags), env)


AGENTS: dict[str, Callable[[str, str, str], Start]] = {"pi": pi, "goose": goose, "claude-code": claude_code}


def environment(start: Start, home: Path) -> dict[str, str]:
    """Give an agent nothing of ours: no proxies, no keys."""
    paths = f"{pins()['node24'].folder}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": paths, "HOME": str(home), "TERM": "dumb", "CI": "1", "LANG": "C.UTF-8", **start.env}


def _program(folder: str, name: str) -> str:
    return str(pins()[folder].folder / "node_modules" / ".bin" / name)

"""How each agent is pointed at the gateway: environment, files, command; and how it is asked once, without a terminal.

`Place` says where it runs; what an agent needs is a `Start`. What only the tests need is apart from what everybody
needs, because docs/clients.md shows the latter as it stands here.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.clients.install import HERE, pins

TESTS_ONLY = "# only in tests"
"""Ends a line of a file that nobody else needs."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one row runs."""

    url: str
    """The gateway's address, without a path."""
    home: Path
    work: Path
    prompt: str
    model: str


@dataclass(frozen=True, slots=True)
class Start:
    """A command, with its environment and the files that must be there."""

    command: tuple[str, ...]
    once: tuple[str, ...] = ()
    """What is added so that it answers one prompt and asks nobody."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    quiet: Mapping[str, str] = field(default_factory=dict[str, str])
    """What keeps it from asking the net for news."""
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])
    before: tuple[str, ...] = ()
    """A command that runs first."""
    node: str = ""
    """The folder of a Node of its own."""


def _bin(folder: str, name: str) -> str:
    pinned = pins()[folder]
    return str(pinned.folder / ("node_modules/.bin" if pinned.kind == "npm" else "bin") / name)


# ---------------------------------------------------------------- one wire


def claude_code(place: Place) -> Start:
    return Start(
        (_bin("claude-code", "claude"),),
        ("-p", place.prompt, "--dangerously-skip-permissions", "--output-format", "json"),
        {
            "ANTHROPIC_BASE_URL": place.url,
            "ANTHROPIC_AUTH_TOKEN": "none",
            "ANTHROPIC_MODEL": place.model,
            "ANTHROPIC_SMALL_FAST_MODEL": place.model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        {"DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"},  # the second lets root skip permissions
    )


def claude_code_inline(place: Place) -> Start:
    """Claude Code with all its tools in every request, instead of a search for them."""
    told = claude_code(place)
    return replace(told, env={**told.env, "ENABLE_TOOL_SEARCH": "false"})


def codex(place: Place, model: str = "", servers: str = "") -> Start:
    # Without a net, Codex waits 4 s for a list of plugins before it ends.
    config = f"""\
model = {json.dumps(model or place.model)}
model_provider = "toolspeak"
check_for_update_on_startup = false {TESTS_ONLY}
analytics.enabled = false {TESTS_ONLY}
features.plugins = false {TESTS_ONLY}

[model_providers.toolspeak]
name = "toolspeak"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "TOOLSPEAK_KEY"
request_max_retries = 0 {TESTS_ONLY}
stream_max_retries = 0 {TESTS_ONLY}
{servers}"""
    return Start(
        (_bin("codex", "codex"),),
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", place.prompt),
        {"TOOLSPEAK_KEY": "none"},
        files={place.home / ".codex" / "config.toml": config},
    )


def codex_known(place: Place) -> Start:
    """Codex with a model that it knows: it offers `apply_patch`, a custom tool of free text."""
    return codex(place, "gpt-5.5")


def codex_namespace(place: Place) -> Start:
    """Codex with an MCP server, whose tools come in a namespace."""
    server = f'command = "{sys.executable}"\nargs = ["{HERE / "notes_server.py"}"]\ncwd = "{place.work}"\n'
    return codex(place, servers=f"\n[mcp_servers.notes]\n{server}")


def codex_oss(place: Place) -> Start:
    """Codex as it looks for a local Ollama: it asks for the version and the models first."""
    provider = ("--oss", "--local-provider", "ollama", "-c", "model_provider=ollama", "-m", place.model)
    told = codex(place)
    once = (*told.once[:-1], *provider, place.prompt)
    return replace(told, once=once, env={"CODEX_OSS_BASE_URL": f"{place.url}/v1"})


def gemini_cli(place: Place) -> Start:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    return Start(
        (_bin("gemini-cli", "gemini"), "-m", place.model),
        ("--approval-mode", "yolo", "-p", place.prompt, "--output-format", "json"),
        {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": "none"},
        {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TELEMETRY_ENABLED": "false"},
        {place.home / ".gemini" / "settings.json": json.dumps(settings)},
    )


def qwen_code(place: Place) -> Start:
    settings = {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
    return Start(
        (_bin("qwen-code", "qwen"), "--auth-type", "openai"),
        ("--approval-mode", "yolo", "-p", place.prompt, "--output-format", "json"),
        {"OPENAI_BASE_URL": f"{place.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": place.model},
        {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"},
        {place.home / ".qwen" / "settings.json": json.dumps(settings)},
    )


def cline(place: Place) -> Start:
    program, provider = _bin("cline", "cline"), "openai-compatible"
    return Start(
        (program, "-P", provider, "-m", place.model),
        ("--json", "--auto-approve", "true", place.prompt),
        quiet={"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"},
        before=(program, "auth", "-p", provider, "-k", "none", "-m", place.model, "-b", f"{place.url}/v1"),
    )


def continue_cli(place: Place, provider: str = "openai", path: str = "/v1") -> Start:
    config = f"""\
name: toolspeak
version: 1.0.0
schema: v1
models:
  - name: toolspeak
    provider: {provider}
    model: {place.model}
    apiBase: {place.url}{path}
    apiKey: none
    roles: [chat, edit]
    capabilities: [tool_use]
"""
    file = place.home / "continue.yaml"
    return Start(
        (_bin("continue", "cn"), "--config", str(file)),
        ("--auto", "-p", place.prompt),
        quiet={"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"},
        files={file: config},
    )


def mistral_vibe(place: Place) -> Start:
    config = f"""\
active_model = "toolspeak"
enable_auto_update = false {TESTS_ONLY}
enable_update_checks = false {TESTS_ONLY}
enable_telemetry = false {TESTS_ONLY}

[[providers]]
name = "toolspeak"
api_base = "{place.url}/v1"
api_key_env_var = "TOOLSPEAK_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = {json.dumps(place.model)}
provider = "toolspeak"
alias = "toolspeak"
"""
    return Start(
        (_bin("mistral-vibe", "vibe"),),
        ("--trust", "-p", place.prompt, "--auto-approve", "--output", "json"),
        {"TOOLSPEAK_KEY": "none"},
        files={place.home / ".vibe" / "config.toml": config},
    )


def mini_swe_agent(place: Place) -> Start:
    return Start(
        (_bin("mini-swe-agent", "mini"), "-m", f"openai/{place.model}"),
        ("-t", place.prompt, "--yolo", "--exit-immediately", "-l", "0"),
        {"OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_API_KEY": "none", "MSWEA_COST_TRACKING": "ignore_errors"},
        {"MSWEA_CONFIGURED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )


def aider(place: Place) -> Start:
    once = ("--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-gitignore")
    return Start(
        (_bin("aider", "aider"), "--model", f"openai/{place.model}"),
        ("--edit-format", "whole", *once, "--message", place.prompt),
        {"OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_API_KEY": "none"},
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )


# ---------------------------------------------------------------- several wires


def goose(place: Place, provider: str, env: Mapping[str, str]) -> Start:
    program = pins()["goose"].folder / "node_modules/@aaif/goose-binary-linux-x64/bin/goose"
    return Start(
        (str(program),),
        ("run", "--no-session", "--with-builtin", "developer", "-t", place.prompt),
        {
            "GOOSE_PROVIDER": provider,
            "GOOSE_MODEL": place.model,
            **{name: value.format(url=place.url) for name, value in env.items()},
        },
        {"GOOSE_MODE": "auto", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"},
    )


def pi(place: Place, api: str, path: str) -> Start:
    model = {
        "id": place.model,
        "name": place.model,
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": 128000,
        "maxTokens": 8000,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": f"{place.url}{path}", "apiKey": "none", "api": api, "models": [model]}
    return Start(
        (_bin("pi", "pi"), "--provider", "toolspeak", "--model", place.model),
        ("-p", place.prompt),
        quiet={"PI_OFFLINE": "1"},
        files={place.home / ".pi" / "agent" / "models.json": json.dumps({"providers": {"toolspeak": provider}})},
    )


def opencode(place: Place, package: str, path: str) -> Start:
    limit = {"context": 128000, "output": 8000}
    provider = {
        "npm": f"@ai-sdk/{package}",
        "name": "toolspeak",
        "options": {"baseURL": f"{place.url}{path}", "apiKey": "none"},
        "models": {place.model: {"name": place.model, "tool_call": True, "limit": limit}},
    }
    full = f"toolspeak/{place.model}"
    config = {"provider": {"toolspeak": provider}, "model": full, "small_model": full}
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return Start(
        (_bin("opencode", "opencode"),),
        ("run", "--model", full, place.prompt),
        quiet={"OPENCODE_PERMISSION": '{"*": "allow"}', **{f"OPENCODE_DISABLE_{what}": "1" for what in off}},
        files={place.work / "opencode.json": json.dumps(config)},
    )


def kimi_code(place: Place, type: str, path: str) -> Start:
    config = f"""\
default_model = "toolspeak"
telemetry = false {TESTS_ONLY}

[providers.toolspeak]
type = "{type}"
base_url = "{place.url}{path}"
api_key = "none"

[models.toolspeak]
provider = "toolspeak"
model = {json.dumps(place.model)}
max_context_size = 128000
"""
    return Start(
        (_bin("kimi-code", "kimi"),),
        ("-p", place.prompt, "--output-format", "stream-json"),
        quiet={"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1"},
        files={place.home / ".kimi-code" / "config.toml": config},
        node="node24",
    )


def copilot(place: Place, type: str, api: str, path: str) -> Start:
    return Start(
        (_bin("copilot", "copilot"),),
        ("-p", place.prompt, "--allow-all-tools", "--allow-all-paths", "--no-color"),
        {
            "COPILOT_PROVIDER_BASE_URL": f"{place.url}{path}",
            "COPILOT_PROVIDER_TYPE": type,
            **({"COPILOT_PROVIDER_WIRE_API": api} if api else {}),
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": place.model,
        },
        {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"},
    )


def llm(place: Place, model: str, env: Mapping[str, str]) -> Start:
    """`llm` with a tool that is a Python function."""
    user = place.home / ".config" / "io.datasette.llm"
    entry = {"model_id": "toolspeak", "model_name": place.model, "api_base": f"{place.url}/v1", "supports_tools": True}
    files = {user / "extra-openai-models.yaml": json.dumps([entry])} if model == "toolspeak" else {}
    return Start(
        (_bin("llm", "llm"), "-m", model.format(model=place.model)),
        ("--functions", str(HERE / "python" / "llm_function.py"), "--no-log", place.prompt),
        {name: value.format(url=place.url) for name, value in env.items()},
        {"LLM_USER_PATH": str(user)},
        files,
    )

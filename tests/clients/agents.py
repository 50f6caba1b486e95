"""How each agent is asked once, without a terminal. How it is pointed at the gateway is what `toolspeak launch` does.

`Place` says where it runs; what an agent needs is a `Start`.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.clients.install import HERE, pins
from toolspeak.cli.launch.agents import AGENTS, AgentTarget, Recipe


@dataclass(frozen=True, slots=True)
class Place:
    """Where one row runs."""

    url: str
    """The gateway's address, without a path."""
    home: Path
    work: Path
    prompt: str
    model: str
    recipe: Recipe | None = None
    """How an agent is pointed at the gateway, if not as `toolspeak launch` does it."""


@dataclass(frozen=True, slots=True)
class Start:
    """A command, with its environment and the files that must be there."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])
    node: str = ""
    """The folder of a Node of its own."""


def start_of(name: str, program: str, place: Place, *once: str, api: str = "", **quiet: str) -> Start:
    """Start an agent as `toolspeak launch` does; `once` makes it answer one prompt, `quiet` keeps it from the net."""
    recipes = AGENTS[name].recipes
    launched = recipes[api or next(iter(recipes))](AgentTarget(place.url, place.model, place.home / "launch"))
    recipe = place.recipe or launched
    return Start((program, *recipe.arguments, *once), {**recipe.env, **quiet}, recipe.files)


def program_of(folder: str, name: str) -> str:
    """Return the path of a program of a pinned folder."""
    pinned = pins()[folder]
    return str(pinned.folder / ("node_modules/.bin" if pinned.kind == "npm" else "bin") / name)


# ---------------------------------------------------------------- one wire


def claude_code(place: Place) -> Start:
    once = ("-p", place.prompt, "--dangerously-skip-permissions", "--output-format", "json")
    program = program_of("claude-code", "claude")
    # The second lets root skip permissions.
    return start_of("claude", program, place, *once, DISABLE_AUTOUPDATER="1", IS_SANDBOX="1")


def claude_code_inline(place: Place) -> Start:
    """Claude Code with all its tools in every request, instead of a search for them."""
    start = claude_code(place)
    return replace(start, env={**start.env, "ENABLE_TOOL_SEARCH": "false"})


def codex(place: Place, *settings: str) -> Start:
    # Without a net, Codex waits 4 s for a list of plugins before it ends.
    quiet = ("check_for_update_on_startup=false", "analytics.enabled=false", "features.plugins=false")
    impatient = [f"model_providers.toolspeak.{kind}_max_retries=0" for kind in ("request", "stream")]
    words = [word for setting in (*quiet, *impatient, *settings) for word in ("-c", setting)]
    return start_of("codex", program_of("codex", "codex"), place, *words, *_codex_once(place))


def _codex_once(place: Place) -> tuple[str, ...]:
    return ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", place.prompt)


def codex_known(place: Place) -> Start:
    """Codex with a model that it knows: it offers `apply_patch`, a custom tool of free text."""
    return codex(replace(place, model="gpt-5.5"))


def codex_namespace(place: Place) -> Start:
    """Codex with an MCP server, whose tools come in a namespace."""
    server = {"command": sys.executable, "args": [str(HERE / "notes_server.py")], "cwd": str(place.work)}
    return codex(place, *(f"mcp_servers.notes.{name}={json.dumps(value)}" for name, value in server.items()))


def codex_oss(place: Place) -> Start:
    """Codex as it looks for a local Ollama: it asks for the version and the models first."""
    *once, prompt = _codex_once(place)
    provider = ("--oss", "--local-provider", "ollama", "-c", "model_provider=ollama", "-m", place.model)
    quiet = ("-c", "analytics.enabled=false", "-c", "features.plugins=false")
    command = (program_of("codex", "codex"), *quiet, *once, *provider, prompt)
    return Start(command, {"CODEX_OSS_BASE_URL": f"{place.url}/v1"})


def gemini_cli(place: Place) -> Start:
    once = ("--approval-mode", "yolo", "-p", place.prompt, "--output-format", "json")
    program = program_of("gemini-cli", "gemini")
    start = start_of(
        "gemini", program, place, *once, GEMINI_CLI_TRUST_WORKSPACE="true", GEMINI_TELEMETRY_ENABLED="false"
    )
    settings = {"privacy": {"usageStatisticsEnabled": False}}
    return _with_file(start, place.home / ".gemini" / "settings.json", settings)


def qwen_code(place: Place) -> Start:
    once = ("--approval-mode", "yolo", "-p", place.prompt, "--output-format", "json")
    start = start_of("qwen", program_of("qwen-code", "qwen"), place, *once, QWEN_CODE_SUPPRESS_YOLO_WARNING="1")
    settings = {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
    return _with_file(start, place.home / ".qwen" / "settings.json", settings)


def _with_file(start: Start, path: Path, value: object) -> Start:
    return replace(start, files={**start.files, path: json.dumps(value)})


def cline(place: Place) -> Start:
    once = ("--json", "--auto-approve", "true", place.prompt)
    quiet = {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"}
    return start_of("cline", program_of("cline", "cline"), place, *once, **quiet)


def continue_cli(place: Place) -> Start:
    quiet = {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}
    return start_of("continue", program_of("continue", "cn"), place, "--auto", "-p", place.prompt, **quiet)


def continue_ollama(place: Place) -> Start:
    """Continue with its provider for Ollama."""
    start = continue_cli(place)
    [(path, text)] = start.files.items()
    changed = text.replace("provider: openai", "provider: ollama").replace(f"{place.url}/v1", place.url)
    return replace(start, files={path: changed})


def mistral_vibe(place: Place) -> Start:
    once = ("--trust", "-p", place.prompt, "--auto-approve", "--output", "json")
    off = ("AUTO_UPDATE", "UPDATE_CHECKS", "TELEMETRY")
    quiet = {f"VIBE_ENABLE_{what}": "false" for what in off}
    return start_of("vibe", program_of("mistral-vibe", "vibe"), place, *once, **quiet)


def mini_swe_agent(place: Place) -> Start:
    once = ("-t", place.prompt, "--yolo", "--exit-immediately", "-l", "0")
    quiet = {"MSWEA_CONFIGURED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return start_of("mini", program_of("mini-swe-agent", "mini"), place, *once, **quiet)


def aider(place: Place) -> Start:
    quiet = ("--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-gitignore")
    once = ("--edit-format", "whole", *quiet, "--message", place.prompt)
    return start_of("aider", program_of("aider", "aider"), place, *once, LITELLM_LOCAL_MODEL_COST_MAP="True")


# ---------------------------------------------------------------- several wires


def goose(place: Place, api: str) -> Start:
    program = pins()["goose"].folder / "node_modules/@aaif/goose-binary-linux-x64/bin/goose"
    once = ("run", "--no-session", "--with-builtin", "developer", "-t", place.prompt)
    quiet = {"GOOSE_MODE": "auto", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"}
    return start_of("goose", str(program), place, *once, api=api, **quiet)


def goose_ollama(place: Place) -> Start:
    """Run goose with its provider for Ollama."""
    start = goose(place, "openai_chat")
    return replace(start, env={**start.env, "GOOSE_PROVIDER": "ollama", "OLLAMA_HOST": place.url})


def pi(place: Place, api: str) -> Start:
    return start_of("pi", program_of("pi", "pi"), place, "-p", place.prompt, api=api, PI_OFFLINE="1")


def opencode(place: Place, api: str) -> Start:
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    quiet = {"OPENCODE_PERMISSION": '{"*": "allow"}', **{f"OPENCODE_DISABLE_{what}": "1" for what in off}}
    return start_of("opencode", program_of("opencode", "opencode"), place, "run", place.prompt, api=api, **quiet)


def kimi_code(place: Place, api: str) -> Start:
    once = ("-p", place.prompt, "--output-format", "stream-json")
    quiet = {"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1"}
    return replace(start_of("kimi", program_of("kimi-code", "kimi"), place, *once, api=api, **quiet), node="node24")


def copilot(place: Place, api: str) -> Start:
    once = ("-p", place.prompt, "--allow-all-tools", "--allow-all-paths", "--no-color")
    quiet = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    return start_of("copilot", program_of("copilot", "copilot"), place, *once, api=api, **quiet)


def llm(place: Place, model: str, env: Mapping[str, str]) -> Start:
    """`llm` with a tool that is a Python function."""
    user = place.home / ".config" / "io.datasette.llm"
    entry = {"model_id": "toolspeak", "model_name": place.model, "api_base": f"{place.url}/v1", "supports_tools": True}
    files = {user / "extra-openai-models.yaml": json.dumps([entry])} if model == "toolspeak" else {}
    once = ("--functions", str(HERE / "python" / "llm_function.py"), "--no-log", place.prompt)
    where = {name: value.format(url=place.url) for name, value in env.items()}
    command = (program_of("llm", "llm"), "-m", model.format(model=place.model), *once)
    return Start(command, {**where, "LLM_USER_PATH": str(user)}, files)

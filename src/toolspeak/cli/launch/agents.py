"""How each agent is pointed at the gateway: its program, environment, arguments and temporary files.

`toolspeak launch` starts agents with this table, the client tests run every row of it with the real agents
(tests/clients), and docs/agents/ is written from it. A row changes no file of the user: most agents take everything
from variables and arguments; the others read a file whose path a variable or an argument names.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

NO_KEY: Final = "none"
"""Sent where an agent insists on a key and the gateway has none."""
CONTEXT: Final = 128_000
_LARGEST_ANSWER: Final = 8_000
_CONTEXT_PER_ANSWER: Final = 4
"""An answer may take a quarter of a small context, so that the prompt still fits."""


@dataclass(frozen=True, slots=True)
class AgentTarget:
    """Where an agent connects to, and with which model."""

    url: str
    """Of the gateway, without a path."""
    model: str
    folder: Path
    """For files of the recipe; it is removed when the agent ends."""
    key: str = NO_KEY
    context: int = CONTEXT
    """Tokens of prompt and answer together."""

    @property
    def answer(self) -> int:
        """Tokens of one answer."""
        return min(_LARGEST_ANSWER, self.context // _CONTEXT_PER_ANSWER)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is added to the environment and the command line of an agent, and the files that they name."""

    env: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])


MakeRecipe: TypeAlias = Callable[[AgentTarget], Recipe]


@dataclass(frozen=True, slots=True)
class Agent:
    """A program that toolspeak can launch."""

    name: str
    """What a user types."""
    title: str
    program: str
    """The command on the PATH."""
    install: str
    """The command that installs it."""
    recipes: Mapping[str, MakeRecipe]
    """By the API that the agent speaks; the first is the default."""
    interactive: tuple[str, ...] = ()
    """Arguments that start a conversation, for a program that does not do so without arguments."""
    unset: tuple[str, ...] = ()
    """Variables that would send the agent elsewhere, or send another service's key to the gateway."""


def _claude(target: AgentTarget) -> Recipe:
    models = ("MODEL", "SMALL_FAST_MODEL", "DEFAULT_OPUS_MODEL", "DEFAULT_SONNET_MODEL", "DEFAULT_HAIKU_MODEL")
    return Recipe(
        {
            "ANTHROPIC_BASE_URL": target.url,
            "ANTHROPIC_AUTH_TOKEN": target.key,
            **{f"ANTHROPIC_{name}": target.model for name in models},
            # For a model that it does not know, it assumes a million tokens and never shortens its history.
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(target.context),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
    )


def _codex(target: AgentTarget) -> Recipe:
    provider = "model_providers.toolspeak"
    settings = {
        "model": target.model,
        "model_provider": "toolspeak",
        f"{provider}.name": "toolspeak",
        f"{provider}.base_url": f"{target.url}/v1",
        f"{provider}.wire_api": "responses",
        f"{provider}.env_key": "TOOLSPEAK_KEY",
    }
    # The value is TOML; a JSON string is one, too.
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={json.dumps(value)}")]
    return Recipe({"TOOLSPEAK_KEY": target.key}, tuple(words))


def _gemini(target: AgentTarget) -> Recipe:
    # Only a settings file can choose the API key over a login, and only root may own one besides the user's own: so it
    # gets a home of its own.
    file = target.folder / ".gemini" / "settings.json"
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    env = {
        "GOOGLE_GEMINI_BASE_URL": target.url,
        "GEMINI_API_KEY": target.key,
        "GEMINI_CLI_HOME": str(target.folder),
    }
    return Recipe(env, ("-m", target.model), {file: _json(settings)})


def _qwen(target: AgentTarget) -> Recipe:
    env = {"OPENAI_BASE_URL": f"{target.url}/v1", "OPENAI_API_KEY": target.key, "OPENAI_MODEL": target.model}
    return Recipe(env, ("--auth-type", "openai"))


def _cline(target: AgentTarget) -> Recipe:
    name = "openai-compatible"
    settings = {"provider": name, "apiKey": target.key, "model": target.model, "baseUrl": f"{target.url}/v1"}
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    file = target.folder / "cline.json"
    text = _json({"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: entry}})
    return Recipe({"CLINE_PROVIDER_SETTINGS_PATH": str(file)}, ("-P", name, "-m", target.model), {file: text})


def _continue(target: AgentTarget) -> Recipe:
    config = f"""\
name: toolspeak
version: 1.0.0
schema: v1
models:
  - name: toolspeak
    provider: openai
    model: {json.dumps(target.model)}
    apiBase: {target.url}/v1
    apiKey: {json.dumps(target.key)}
    roles: [chat, edit]
    capabilities: [tool_use]
"""
    file = target.folder / "continue.yaml"
    return Recipe(arguments=("--config", str(file)), files={file: config})


def _vibe(target: AgentTarget) -> Recipe:
    provider = {
        "name": "toolspeak",
        "api_base": f"{target.url}/v1",
        "api_key_env_var": "TOOLSPEAK_KEY",
        "api_style": "openai",
        "backend": "generic",
    }
    model = {"name": target.model, "provider": "toolspeak", "alias": "toolspeak"}
    return Recipe(
        {
            "TOOLSPEAK_KEY": target.key,
            "VIBE_ACTIVE_MODEL": "toolspeak",
            "VIBE_PROVIDERS": json.dumps([provider]),
            "VIBE_MODELS": json.dumps([model]),
        }
    )


def _mini(target: AgentTarget) -> Recipe:
    env = {"OPENAI_API_BASE": f"{target.url}/v1", "OPENAI_API_KEY": target.key, "MSWEA_COST_TRACKING": "ignore_errors"}
    return Recipe(env, ("-m", f"openai/{target.model}"))


def _aider(target: AgentTarget) -> Recipe:
    env = {"OPENAI_API_BASE": f"{target.url}/v1", "OPENAI_API_KEY": target.key}
    return Recipe(env, ("--model", f"openai/{target.model}"))


# ---------------------------------------------------------------- agents that speak several APIs


def _goose(target: AgentTarget, provider: str, address: Mapping[str, str], key: str) -> Recipe:
    where = {name: value.format(url=target.url) for name, value in address.items()}
    return Recipe({"GOOSE_PROVIDER": provider, "GOOSE_MODEL": target.model, **where, key: target.key})


def _pi(target: AgentTarget, api: str, path: str) -> Recipe:
    model = {
        "id": target.model,
        "name": target.model,
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": target.context,
        "maxTokens": target.answer,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": f"{target.url}{path}", "apiKey": target.key, "api": api, "models": [model]}
    # pi has one file of models, the user's; an extension adds a provider without it.
    file = target.folder / "pi.js"
    text = f'export default (pi) => pi.registerProvider("toolspeak", {_json(provider)});\n'
    return Recipe(
        arguments=("-e", str(file), "--provider", "toolspeak", "--model", target.model),
        files={file: text},
    )


def _opencode(target: AgentTarget, package: str, path: str) -> Recipe:
    limit = {"context": target.context, "output": target.answer}
    provider = {
        "npm": f"@ai-sdk/{package}",
        "name": "toolspeak",
        "options": {"baseURL": f"{target.url}{path}", "apiKey": target.key},
        "models": {target.model: {"name": target.model, "tool_call": True, "limit": limit}},
    }
    model = f"toolspeak/{target.model}"
    # This variable overrides the files of user and project; OPENCODE_CONFIG does not override the project's.
    return Recipe(
        {"OPENCODE_CONFIG_CONTENT": _json({"provider": {"toolspeak": provider}, "model": model, "small_model": model})}
    )


def _kimi(target: AgentTarget, type: str, path: str) -> Recipe:
    return Recipe(
        {
            "KIMI_MODEL_NAME": target.model,
            "KIMI_MODEL_PROVIDER_TYPE": type,
            "KIMI_MODEL_BASE_URL": f"{target.url}{path}",
            "KIMI_MODEL_API_KEY": target.key,
            "KIMI_MODEL_MAX_CONTEXT_SIZE": str(target.context),
        }
    )


def _copilot(target: AgentTarget, type: str, api: str, path: str) -> Recipe:
    return Recipe(
        {
            "COPILOT_PROVIDER_BASE_URL": f"{target.url}{path}",
            "COPILOT_PROVIDER_TYPE": type,
            **({"COPILOT_PROVIDER_WIRE_API": api} if api else {}),
            "COPILOT_PROVIDER_API_KEY": target.key,
            "COPILOT_MODEL": target.model,
        }
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


# ---------------------------------------------------------------- the table

_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI = "openai_chat", "openai_responses", "anthropic", "gemini"
_OPENAI_HOST: Final = {"OPENAI_HOST": "{url}", "OPENAI_BASE_PATH": "v1/chat/completions"}

_AGENTS: Final = (
    Agent(
        "claude",
        "Claude Code",
        "claude",
        "npm install -g @anthropic-ai/claude-code",
        {_ANTHROPIC: _claude},
        unset=("ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
    ),
    Agent("codex", "Codex", "codex", "npm install -g @openai/codex", {_RESPONSES: _codex}),
    Agent(
        "gemini",
        "Gemini CLI",
        "gemini",
        "npm install -g @google/gemini-cli",
        {_GEMINI: _gemini},
        unset=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
    ),
    Agent(
        "opencode",
        "opencode",
        "opencode",
        "npm install -g opencode-ai",
        {
            _CHAT: partial(_opencode, package="openai-compatible", path="/v1"),
            _RESPONSES: partial(_opencode, package="openai", path="/v1"),
            _ANTHROPIC: partial(_opencode, package="anthropic", path="/v1"),
            _GEMINI: partial(_opencode, package="google", path="/v1beta"),
        },
    ),
    Agent(
        "goose",
        "goose",
        "goose",
        "brew install block-goose-cli",
        {
            _CHAT: partial(_goose, provider="openai", address=_OPENAI_HOST, key="OPENAI_API_KEY"),
            _RESPONSES: partial(
                _goose,
                provider="openai",
                address={**_OPENAI_HOST, "OPENAI_BASE_PATH": "v1/responses"},
                key="OPENAI_API_KEY",
            ),
            _ANTHROPIC: partial(
                _goose, provider="anthropic", address={"ANTHROPIC_HOST": "{url}"}, key="ANTHROPIC_API_KEY"
            ),
            _GEMINI: partial(_goose, provider="google", address={"GOOGLE_HOST": "{url}"}, key="GOOGLE_API_KEY"),
        },
        interactive=("session",),
    ),
    Agent(
        "pi",
        "pi",
        "pi",
        "npm install -g @mariozechner/pi-coding-agent",
        {
            _CHAT: partial(_pi, api="openai-completions", path="/v1"),
            _RESPONSES: partial(_pi, api="openai-responses", path="/v1"),
            _ANTHROPIC: partial(_pi, api="anthropic-messages", path=""),
            _GEMINI: partial(_pi, api="google-generative-ai", path="/v1beta"),
        },
    ),
    Agent("aider", "aider", "aider", "pip install aider-chat", {_CHAT: _aider}),
    Agent("qwen", "qwen-code", "qwen", "npm install -g @qwen-code/qwen-code", {_CHAT: _qwen}),
    Agent(
        "kimi",
        "kimi-code",
        "kimi",
        "npm install -g @moonshot-ai/kimi-code",
        {
            _CHAT: partial(_kimi, type="openai", path="/v1"),
            _RESPONSES: partial(_kimi, type="openai_responses", path="/v1"),
            _ANTHROPIC: partial(_kimi, type="anthropic", path=""),
            _GEMINI: partial(_kimi, type="google-genai", path=""),
        },
    ),
    Agent(
        "copilot",
        "Copilot CLI",
        "copilot",
        "npm install -g @github/copilot",
        {
            _CHAT: partial(_copilot, type="openai", api="completions", path="/v1"),
            _RESPONSES: partial(_copilot, type="openai", api="responses", path="/v1"),
            _ANTHROPIC: partial(_copilot, type="anthropic", api="", path=""),
        },
    ),
    Agent("cline", "cline", "cline", "npm install -g cline", {_CHAT: _cline}),
    Agent("continue", "Continue CLI", "cn", "npm install -g @continuedev/cli", {_CHAT: _continue}),
    Agent("vibe", "mistral-vibe", "vibe", "pip install mistral-vibe", {_CHAT: _vibe}),
    Agent("mini", "mini-swe-agent", "mini", "pip install mini-swe-agent", {_CHAT: _mini}),
)

AGENTS: Final[Mapping[str, Agent]] = {agent.name: agent for agent in _AGENTS}

"""Which handler a path means. Clients put versions before it, some twice: `/v1/v1/messages` is `/messages`.

What is not in the table is not found; who may ask was decided before, and not by the path.
"""

import re
from dataclasses import dataclass
from typing import Final

from toolspeak.gateway.exchange import Exchange

CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA = "openai_chat", "openai_responses", "anthropic", "gemini", "ollama"
TURN, COUNT, MODELS, MODEL, RUNS, LOAD = "turn", "count", "models", "model", "runs", "load"
_VERSIONS = re.compile(r"(?:/v1(?:beta|alpha)?(?=/))*")
_GEMINI_METHODS: Final = {"generateContent": TURN, "streamGenerateContent": TURN, "countTokens": COUNT}


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked for, in which protocol; `name` is a model's name in the path, or what stands behind /runs/."""

    wire: str
    what: str
    name: str = ""


_EXACT: Final = {
    ("POST", "/chat/completions"): Target(CHAT, TURN),
    ("POST", "/responses"): Target(RESPONSES, TURN),
    ("POST", "/responses/input_tokens"): Target(RESPONSES, COUNT),
    ("POST", "/messages"): Target(ANTHROPIC, TURN),
    ("POST", "/messages/count_tokens"): Target(ANTHROPIC, COUNT),
    ("POST", "/api/chat"): Target(OLLAMA, TURN),
    ("GET", "/api/tags"): Target(OLLAMA, MODELS),
    ("GET", "/api/ps"): Target(OLLAMA, "ps"),
    ("POST", "/api/show"): Target(OLLAMA, MODEL),
    ("GET", "/api/version"): Target(OLLAMA, "version"),
    ("GET", "/api/hello"): Target(ANTHROPIC, "health"),
    ("GET", "/health"): Target(CHAT, "health"),
    ("GET", "/health/load"): Target(CHAT, LOAD),
    ("GET", "/"): Target(OLLAMA, "home"),
}
OPEN: Final = frozenset(("health", "home"))
"""What everybody may see."""


def find(exchange: Exchange) -> Target:
    """Return what is asked for; `what` is empty if there is no such thing."""
    path = _VERSIONS.sub("", exchange.path, count=1)
    method = "GET" if exchange.method == "HEAD" else exchange.method
    target = _EXACT.get((method, path)) or _EXACT.get((method, path.rstrip("/")))
    return target or _under_runs(path) or _under_models(exchange, method, path) or Target(_speaks(exchange, path), "")


def _under_runs(path: str) -> Target | None:
    """Read the paths that are our own."""
    room, _, rest = path.removeprefix("/").partition("/")
    return Target(CHAT, RUNS, rest.rstrip("/")) if room == RUNS else None


def _under_models(exchange: Exchange, method: str, path: str) -> Target | None:
    """Read the paths that three protocols share."""
    room, _, rest = path.removeprefix("/").partition("/")
    if room not in ("models", "tunedModels"):
        return None
    if method == "GET":
        return Target(_speaks(exchange, path), MODEL if rest else MODELS, rest)
    what = _GEMINI_METHODS.get(rest.rpartition(":")[2] if ":" in rest else rest.rpartition("%3A")[2])
    return Target(GEMINI, what) if what and method == "POST" else None


def _speaks(exchange: Exchange, path: str) -> str:
    """Return the protocol of a client that asks on a shared path."""
    if path.startswith("/api/"):
        return OLLAMA
    if exchange.headers(b"anthropic-version"):
        return ANTHROPIC
    if exchange.headers(b"x-goog-api-key") or "/v1beta/" in exchange.path or "key=" in exchange.query:
        return GEMINI
    return CHAT

"""The table of providers with tools, and the user's overrides of it (CAP-1).

>>> Overrides.of({"ollama:llama3.2*": "openai"}).find(("ollama",), "llama3.2:latest")
Override(key='ollama:llama3.2*', capability=<Capability.OPENAI: 'openai'>)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from toolspeak.errors import BadField
from toolspeak.facts.model import Support, without_latest
from toolspeak.ir.constraint import ConstraintForm

_GLOB: Final = frozenset("*?[")


class Capability(StrEnum):
    """The tool calling of a provider."""

    NONE = "none"
    """No tool calling that can be relied on: calls are written as text."""
    OPENAI = "openai"
    """Function calling in the form of OpenAI."""
    ADVANCED = "advanced"
    """Tools in the provider's own form, with its own kind of schemas."""

    @property
    def support(self) -> Support:
        """How such a provider handles tools that are sent to it."""
        return Support.NONE if self is Capability.NONE else Support.NATIVE


PROVIDERS: Final[Mapping[str, Capability]] = {
    "openai": Capability.OPENAI,
    "groq": Capability.OPENAI,
    "deepseek": Capability.OPENAI,
    "deepinfra": Capability.OPENAI,
    "gemini": Capability.ADVANCED,
    "ollama": Capability.NONE,  # depends on the model: Ollama refuses tools for those without the capability
    "cerebras": Capability.NONE,
    "lambda": Capability.NONE,
    # Up to here this is the table of CAP-1, unchanged. The rows below extend it.
    "anthropic": Capability.ADVANCED,
    "azure": Capability.OPENAI,
    "bedrock": Capability.ADVANCED,
    "cohere": Capability.ADVANCED,
    "dashscope": Capability.OPENAI,
    "fireworks": Capability.OPENAI,
    "minimax": Capability.OPENAI,
    "mistral": Capability.OPENAI,
    "moonshot": Capability.OPENAI,
    "nvidia": Capability.OPENAI,
    "openrouter": Capability.OPENAI,
    "perplexity": Capability.NONE,
    "sambanova": Capability.OPENAI,
    "together": Capability.OPENAI,
    "vertex": Capability.ADVANCED,
    "xai": Capability.OPENAI,
    "zai": Capability.OPENAI,
    # Servers whose tools depend on the model, its chat template and their flags: vLLM needs --enable-auto-tool-choice
    # and --tool-call-parser, older builds of llama.cpp need --jinja. A table cannot know how a server was started.
    "compatible": Capability.NONE,
    "llamacpp": Capability.NONE,
    "lmstudio": Capability.NONE,
    "sglang": Capability.NONE,
    "vllm": Capability.NONE,
}
"""The capability of providers for which it is well known. A provider that is not listed counts as NONE."""


@dataclass(frozen=True, slots=True)
class Override:
    """A user's statement about a provider (`groq`) or about models of one (`groq:llama-3*`)."""

    key: str
    capability: Capability


@dataclass(frozen=True, slots=True)
class Overrides:
    """All overrides. The most exact one wins: a model's name, then a pattern, then the provider."""

    rows: tuple[Override, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Capability | str]) -> "Overrides":
        """Make overrides from a mapping of keys to capabilities; raises `BadField` for an invalid key or value."""
        return cls(tuple(Override(key, _capability(key, value)) for key, value in said.items()))

    def over(self, weaker: "Overrides") -> "Overrides":
        """Return these overrides, and those of `weaker` whose key is not among these."""
        own = {row.key for row in self.rows}
        return Overrides((*self.rows, *(row for row in weaker.rows if row.key not in own))) if own else weaker

    def find(self, providers: Iterable[str], model: str) -> Override | None:
        """Return the override of a model whose provider has these names; of equally exact ones, earlier names win."""
        found = [
            (exactness, -place, row)
            for place, provider in enumerate(filter(None, providers))
            for row in self.rows
            if (exactness := _exactness(row.key, provider, model)) is not None
        ]
        return max(found, key=lambda each: each[:2])[2] if found else None

    def names(self, provider: str) -> bool:
        """Return whether there is an override for a provider or one of its models."""
        return any(row.key == provider or row.key.startswith(f"{provider}:") for row in self.rows)


NO_OVERRIDES: Final = Overrides()


def key_problem(key: str) -> str | None:
    """Return why a key names neither a provider nor models of one; None if it is valid."""
    provider, colon, model = key.partition(":")
    if provider.strip() and (model.strip() or not colon):
        return None
    return "is neither a provider, such as ollama, nor models of one, such as ollama:llama3.2*"


def _capability(key: str, value: Capability | str) -> Capability:
    field = f"capabilities[{key!r}]"
    if problem := key_problem(key):
        raise BadField(field, problem)
    if value not in list(Capability):
        raise BadField(field, f"{value!r} is not one of {', '.join(Capability)}")
    return Capability(value)


def _exactness(key: str, provider: str, model: str) -> tuple[int, int] | None:
    """Return how exactly a key names a model, as a sortable pair; None if it does not name it."""
    if key == provider:
        return 0, 0
    if not key.startswith(f"{provider}:"):
        return None
    pattern = without_latest(key.removeprefix(f"{provider}:").lower())
    name = without_latest(model.lower())
    if name == pattern:
        return 2, 0
    plain = sum(letter not in _GLOB for letter in pattern)
    return (1, plain) if fnmatchcase(name, pattern) else None


CONSTRAINTS: Final[Mapping[str, ConstraintForm]] = {
    "anthropic": ConstraintForm.ANTHROPIC,
    "cerebras": ConstraintForm.JSON_SCHEMA,
    "gemini": ConstraintForm.GEMINI,
    "groq": ConstraintForm.JSON_SCHEMA,
    "llamacpp": ConstraintForm.LLAMACPP,
    "lmstudio": ConstraintForm.JSON_SCHEMA,
    "mistral": ConstraintForm.JSON_SCHEMA,
    "ollama": ConstraintForm.OLLAMA,
    "openai": ConstraintForm.STRICT,
    "openrouter": ConstraintForm.JSON_SCHEMA,
    "sglang": ConstraintForm.SGLANG,
    "together": ConstraintForm.JSON_SCHEMA,
    "vllm": ConstraintForm.VLLM,
}

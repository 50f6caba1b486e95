"""Which providers have tools, as far as a table can know it, and what users say against it (CAP-1).

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

_GLOB: Final = frozenset("*?[")


class Capability(StrEnum):
    """The tool calling of a provider."""

    NONE = "none"
    """None that could be relied on: calls are written as text."""
    OPENAI = "openai"
    """Function calling as OpenAI has it."""
    ADVANCED = "advanced"
    """Tools in a form of its own, with schemas of its own."""

    @property
    def support(self) -> Support:
        """Return what becomes of tools there."""
        return Support.NONE if self is Capability.NONE else Support.NATIVE


PROVIDERS: Final[Mapping[str, Capability]] = {
    "openai": Capability.OPENAI,
    "groq": Capability.OPENAI,
    "deepseek": Capability.OPENAI,
    "deepinfra": Capability.OPENAI,
    "gemini": Capability.ADVANCED,
    "ollama": Capability.NONE,  # its models differ
    "cerebras": Capability.NONE,
    "lambda": Capability.NONE,
    # Up to here the table of CAP-1, to the letter; from here on its continuation.
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
    # Servers whose tools depend on their model, its template and their flags.
    "compatible": Capability.NONE,
    "llamacpp": Capability.NONE,
    "lmstudio": Capability.NONE,
    "sglang": Capability.NONE,
    "vllm": Capability.NONE,
}
"""What a provider can do, where that is well known. Who is not here is taken to have none."""


@dataclass(frozen=True, slots=True)
class Override:
    """What somebody said of a provider (`groq`) or of models of one (`groq:llama-3*`)."""

    key: str
    capability: Capability


@dataclass(frozen=True, slots=True)
class Overrides:
    """All that was said. The more exact row wins: a model's name, then a pattern, then the provider."""

    rows: tuple[Override, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Capability | str]) -> "Overrides":
        """Take what a caller says; raises `BadField`."""
        return cls(tuple(Override(key, _capability(key, value)) for key, value in said.items()))

    def over(self, weaker: "Overrides") -> "Overrides":
        """Return these rows, and the other's where these have none."""
        own = {row.key for row in self.rows}
        return Overrides((*self.rows, *(row for row in weaker.rows if row.key not in own))) if own else weaker

    def find(self, providers: Iterable[str], model: str) -> Override | None:
        """Return what was said of a model, whose provider has these names, the one that is heard first in front."""
        found = [
            (exactness, -place, row)
            for place, provider in enumerate(filter(None, providers))
            for row in self.rows
            if (exactness := _exactness(row.key, provider, model)) is not None
        ]
        return max(found, key=lambda each: each[:2])[2] if found else None

    def names(self, provider: str) -> bool:
        """Return whether something was said of a provider."""
        return any(row.key == provider or row.key.startswith(f"{provider}:") for row in self.rows)


NO_OVERRIDES: Final = Overrides()


def key_problem(key: str) -> str | None:
    """Return why something names neither a provider nor models of one."""
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
    """Return how exactly a row speaks of a model; None if it does not."""
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

"""Merges the facts about a model, and chooses a strategy if only the model's name is known (CAP-2).

>>> strategy_for("openai:gpt-4").native
True
>>> strategy_for("ollama:llama3.2:latest").why
'ollama is not known to have tools for every model: calls are written as text (pythonic)'

Sources of facts, from the weakest to the strongest:

    the row of its family  <  preset and configuration of its upstream  <  an override of the user

Measurements come later (`ModelFacts.with_tools`): they override tables, and are overridden by the user.

The table of providers with tools, and the user's overrides of it (CAP-1):

>>> Overrides.of({"ollama:llama3.2*": "openai"}).find(("ollama",), "llama3.2:latest")
Override(key='ollama:llama3.2*', capability=<Capability.OPENAI: 'openai'>)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from toolspeak.errors import BadField
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT, UNKNOWN_MODEL, ModelFacts, Source, Support, without_latest
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
"""The form of constrained decoding of each kind of server (CHK-8), by the name of its preset.

Presets and probes both read this table: a preset for a server that the user names, a probe for one that it recognises.
Before that, a llama.cpp on any other port than its preset's got no grammar.
"""


def facts_of(
    model: str,
    said: ModelFacts = UNKNOWN_MODEL,
    providers: Iterable[str] = (),
    overrides: Overrides = NO_OVERRIDES,
) -> ModelFacts:
    """Merge the facts about a model. `said` are those of its upstream, `providers` the names of that upstream.

    The table of providers is not used here, but only if nothing but a model's name is known (`strategy_for`). For an
    upstream that can be asked, it would claim for all models what is true of some. So the support of tools stays
    unknown: they are sent, and a refusal or a probe decides (CAP-3).
    """
    facts = said.over(family_facts(model))
    override = overrides.find(providers, model) if overrides.rows else None
    return facts if override is None else facts.with_tools(override.capability.support, Source.SAID)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A strategy, with the reason for it."""

    native: bool
    """Whether tools are sent; else they are written into the prompt."""
    capability: Capability
    dialect: str
    """The dialect of emulated calls; with `native`, it is used if the upstream refuses tools."""
    why: str


def strategy_for(name: str, overrides: Overrides | Mapping[str, Capability | str] = NO_OVERRIDES) -> Chosen:
    """Choose by a model's name. The part before the first colon is its provider, if that is known or overridden.

    Overrides look like `{"deepinfra:new-model": "openai"}`; raises `BadField` for an invalid one.
    """
    if not isinstance(overrides, Overrides):
        overrides = Overrides.of(overrides)
    before, _, after = name.partition(":")
    known = before in PROVIDERS or overrides.names(before)
    provider, model = (before, after) if known else ("", name)
    dialect = family_facts(model).dialect or DEFAULT_DIALECT
    override = overrides.find((provider,), model)
    capability = override.capability if override else PROVIDERS.get(provider, Capability.NONE)
    native = capability is not Capability.NONE
    because = f"{override.key} is said to be {capability}" if override else _because(provider, capability, name)
    how = "tools are sent" if native else f"calls are written as text ({dialect})"
    return Chosen(native, capability, dialect, f"{because}: {how}")


def _because(provider: str, capability: Capability, name: str) -> str:
    match capability:
        case Capability.OPENAI:
            return f"{provider} has function calling as OpenAI has it"
        case Capability.ADVANCED:
            return f"{provider} has tools in a form of its own"
        case Capability.NONE if provider:
            return f"{provider} is not known to have tools for every model"
        case Capability.NONE:
            return f"{name!r} names no provider that is known"

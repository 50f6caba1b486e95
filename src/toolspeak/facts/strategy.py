"""Merges the facts about a model, and chooses a strategy if only the model's name is known (CAP-2).

>>> strategy_for("openai:gpt-4").native
True
>>> strategy_for("ollama:llama3.2:latest").why
'ollama is not known to have tools for every model: calls are written as text (pythonic)'

Sources of facts, from the weakest to the strongest:

    the row of its family  <  preset and configuration of its upstream  <  an override of the user

Measurements come later (`ModelFacts.with_tools`): they override tables, and are overridden by the user.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolspeak.facts.capability import NO_OVERRIDES, PROVIDERS, Capability, Overrides
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT, UNKNOWN_MODEL, ModelFacts, Source


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

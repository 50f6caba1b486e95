"""All that is known of one model, from those who know little to those who are believed.

    its family's row  <  its upstream's preset and configuration  <  an override of the user

What is measured comes later (`ModelFacts.with_tools`): it is believed more than a table, and less than the user.

The table of providers is not asked here. It answers where only a model's name is known (`strategy_for`). Of an upstream
that can be asked it would say for all models what is true of some, so that nothing is known of its tools: they are
sent, and a refusal or a probe tells (CAP-3).
"""

from collections.abc import Iterable

from toolspeak.facts.capability import NO_OVERRIDES, Overrides
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Source


def facts_of(
    model: str,
    said: ModelFacts = UNKNOWN_MODEL,
    providers: Iterable[str] = (),
    overrides: Overrides = NO_OVERRIDES,
) -> ModelFacts:
    """Merge what is known of a model; `said` is of its upstream, `providers` are the names that this one has."""
    facts = said.over(family_facts(model))
    override = overrides.find(providers, model) if overrides.rows else None
    return facts if override is None else facts.with_tools(override.capability.support, Source.SAID)

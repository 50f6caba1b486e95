"""The profiles that ship with toolspeak: for models that we measured ourselves, so that users need no doctor (CAP-12).

>>> shipped_profile("qwen2.5-coder:0.5b", "ollama").form
'hermes+strict'

The rows are in `data/profiles.json`, each with its evidence and its date. A row holds for a family and a size, on the
kinds of server that it names. The doctor's own profile overrides it, and so does everything that the user sets.
"""

from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Final

import msgspec

from toolspeak.facts.families import begins_with, hyphenated, plain_name
from toolspeak.facts.model import Profile, Setting

_NOT_CHATTING: Final = frozenset(("base", "embedding", "reranker"))
"""Parts of the names of models that share a family's name, and were not trained to answer."""


@dataclass(frozen=True, slots=True)
class ShippedProfile:
    """What we measured of the models of one family and size."""

    name: str
    patterns: tuple[str, ...]
    """The beginnings of its names, as those of a family."""
    examples: tuple[str, ...]
    servers: tuple[str, ...]
    """The kinds of server that it holds for, by the names of their presets."""
    form: str
    """The name of the doctor's form with these settings."""
    settings: dict[str, Setting]
    evidence: str
    """What was measured, on what and against what, with its figures."""
    date: str

    @property
    def profile(self) -> Profile:
        """The profile that a route uses. It has no endpoint, for it holds for all of them."""
        return Profile(self.name, "", self.form, self.settings, verdict=self.evidence, date=self.date)


@cache
def shipped_profiles() -> tuple[ShippedProfile, ...]:
    """Load all rows."""
    return msgspec.json.decode(
        get_data("toolspeak.facts", "data/profiles.json") or b"", type=tuple[ShippedProfile, ...]
    )


def shipped_profile(model: str, server: str) -> Profile | None:
    """Return the profile of a model on a kind of server; None if we measured none."""
    name = plain_name(model)
    if _NOT_CHATTING.intersection(name.split("-")):
        return None
    rows = (row for row in shipped_profiles() if server in row.servers)
    return next((row.profile for row in rows if any(begins_with(name, hyphenated(one)) for one in row.patterns)), None)

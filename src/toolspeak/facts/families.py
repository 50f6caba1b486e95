"""Model families by their names: which form of calls they have learned, which ids they want.

>>> family_facts("Qwen/Qwen3-Coder-30B-A3B-Instruct-GGUF").dialect
'qwen_xml'

Several rows may speak of one model; the one with the longer pattern is more special, and heard first. A name that
nobody knows has no facts. `starts_in_reasoning` is in no row: whether an answer begins in its reasoning is the server's
doing as much as the template's, and where the server sets the reasoning apart the whole answer would be taken for it.
"""

from fnmatch import fnmatchcase
from functools import lru_cache, reduce
from typing import Final

from toolspeak.facts._families_text import TEXT_FAMILIES
from toolspeak.facts._families_tokens import TOKEN_FAMILIES
from toolspeak.facts._family import Family
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.facts.names import plain, plain_name

FAMILIES: Final = (*TEXT_FAMILIES, *TOKEN_FAMILIES)
_MOST: Final = 4096
_PATTERNS: Final = sorted(
    ((plain(pattern), family) for family in FAMILIES for pattern in family.patterns), key=lambda row: len(row[0])
)
"""The general ones first."""


def families_of(model: str) -> tuple[Family, ...]:
    """Return the rows that speak of a model, the most special one last."""
    return _matching(plain_name(model))


def family_facts(model: str) -> ModelFacts:
    """Return what is known of a model by its name alone."""
    return _merged(plain_name(model))


@lru_cache(_MOST)
def _matching(name: str) -> tuple[Family, ...]:
    matching = (family for pattern, family in _PATTERNS if fnmatchcase(f"{name}-", f"{pattern}[-.]*"))
    return tuple(dict.fromkeys(matching))


@lru_cache(_MOST)
def _merged(name: str) -> ModelFacts:
    return reduce(lambda known, family: family.facts.over(known), _matching(name), UNKNOWN_MODEL)

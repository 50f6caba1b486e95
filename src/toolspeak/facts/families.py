"""Recognises model families by name: the form of calls that they have learned, and the ids that they want.

>>> family_facts("Qwen/Qwen3-Coder-30B-A3B-Instruct-GGUF").dialect
'qwen_xml'
>>> plain_name("hf.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M")
'llama-3.1-8b-instruct-gguf-q-4-k-m'

The same model has another name on every server, so names are compared in a plain form. The rows are in
`data/families.json`. Several rows may match one model; a longer pattern is more special and overrides a shorter one. An
unknown name has no facts.

Two kinds of families differ in how they are taught. Those whose calls are plain text (Hermes, Qwen, Llama) are taught
the form that they have learned. Those whose calls are control tokens (Mistral, Kimi, DeepSeek) cannot be asked for
their own form in a prompt, because servers do not show control tokens: they are taught the default dialect, and calls
that leak in their own form are read by `any`.

No row sets `starts_in_reasoning`. Whether an answer begins in its reasoning depends on the server as much as on the
template; if the server separates the reasoning itself, the whole answer would be taken for reasoning.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache, reduce
from pkgutil import get_data
from typing import Final

import msgspec

from toolspeak.facts.model import QUIRKS_IDS, UNKNOWN_MODEL, ModelFacts
from toolspeak.ir.quirks import IdForm, Quirks

_MOST: Final = 4096  # names that are cached: clients choose them, so there must be a limit (P7)
LONGEST: Final = 256
"""The most characters of a name that are compared, because a client may send a name of any length."""
_PUBLISHERS: Final = (
    *("ai21", "alibaba", "amazon", "anthropic", "arcee-ai", "cohere", "coherelabs", "cohereforai", "deepseek-ai"),
    *("google", "ibm-granite", "ibm", "liquidai", "lgai-exaone", "meta-llama", "meta", "meetkai", "microsoft"),
    *("minimaxai", "mistralai", "moonshotai", "moonshot", "nousresearch", "nvidia", "openai", "qwen", "thudm"),
    *("unsloth", "upstage", "us", "eu", "apac", "global", "zai-org", "zai"),
)
"""Prefixes of a name without a slash: `Meta-Llama-3.1`, `google_gemma-3`, `us.meta.llama3-1`."""
_PUBLISHER: Final = re.compile(rf"(?:{'|'.join(_PUBLISHERS)})[._-](?=[a-z])")
_SEPARATORS: Final = re.compile(r"[\s_:@-]+")
_LETTER_DIGIT: Final = re.compile(r"(?<=[a-z])(?=\d)")
_VERSION: Final = re.compile(r"(?<![\d.])(\d)-(\d)(?=-|$)")  # Bedrock writes `llama3-1` for Llama 3.1


@dataclass(frozen=True, slots=True)
class Family:
    """Models that were trained alike. None means that the row says nothing about a field; a more general row may."""

    name: str
    patterns: tuple[str, ...]
    """The beginnings of its names, up to a hyphen or a dot; `*`, `?` and `[12]` work as in file names."""
    examples: tuple[str, ...]
    why: str
    """How this is known, in one line."""
    trained: str | None = None
    """The dialect that its own chat template asks for."""
    taught: str | None = None
    """The dialect that it is taught if calls are emulated; the default dialect if only `trained` is set."""
    leaks_as: str | None = None
    calls_in_reasoning: bool | None = None
    system_role: bool | None = None
    context_tokens: int | None = None
    ids: IdForm | None = None

    @property
    def facts(self) -> ModelFacts:
        """The facts that the row states, and no others."""
        knows_dialect = self.trained is not None or self.taught is not None
        said = {
            "dialect": knows_dialect,
            "leaks_as": self.leaks_as is not None,
            "calls_in_reasoning": self.calls_in_reasoning is not None,
            "system_role": self.system_role is not None,
            QUIRKS_IDS: self.ids is not None,
        }
        return ModelFacts(
            dialect=self.taught or "",
            leaks_as=self.leaks_as or "",
            calls_in_reasoning=bool(self.calls_in_reasoning),
            system_role=self.system_role is not False,
            context_tokens=self.context_tokens,
            quirks=Quirks(ids=self.ids or IdForm.ANY),
            said=frozenset(name for name, is_said in said.items() if is_said),
        )


@cache
def families() -> tuple[Family, ...]:
    """Load all rows."""
    return msgspec.json.decode(get_data("toolspeak.facts", "data/families.json") or b"", type=tuple[Family, ...])


def families_of(model: str) -> tuple[Family, ...]:
    """Return the rows that match a model, the most specific one last."""
    return _matching(plain_name(model))


def family_facts(model: str) -> ModelFacts:
    """Return the facts that follow from a model's name alone."""
    return _merged(plain_name(model))


@cache
def _patterns() -> list[tuple[str, Family]]:
    """Return all patterns with their families, the most general (shortest) first."""
    rows = ((hyphenated(pattern), family) for family in families() for pattern in family.patterns)
    return sorted(rows, key=lambda row: len(row[0]))


@lru_cache(_MOST)
def _matching(name: str) -> tuple[Family, ...]:
    return tuple(dict.fromkeys(family for pattern, family in _patterns() if begins_with(name, pattern)))


def begins_with(name: str, pattern: str) -> bool:
    """Return whether a plain name begins with a hyphenated pattern that ends at a border of the name.

    `qwen-2` matches `qwen-2.5` and `qwen-2-7b`, and not `qwen-25`.
    """
    return fnmatchcase(f"{name}-", f"{pattern}[-.]*")


@lru_cache(_MOST)
def _merged(name: str) -> ModelFacts:
    return reduce(lambda known, family: family.facts.over(known), _matching(name), UNKNOWN_MODEL)


def plain_name(model: str) -> str:
    """Return the name without path, publisher and file ending, in lower case, with hyphens between its parts."""
    name = model[-LONGEST:].lower().replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    while found := _PUBLISHER.match(name):
        rest = name[found.end() :]
        # "qwen" is a publisher in "qwen-qwen2.5-…" or "qwen-qwq-…", and the family's own name in "qwen-max".
        if found[0].startswith("qwen") and not rest.startswith("qw"):
            break
        name = rest
    return _VERSION.sub(r"\1.\2", hyphenated(name))


def hyphenated(name: str) -> str:
    """Return the name with hyphens between its parts: `qwen2.5_coder` becomes `qwen-2.5-coder`."""
    return _LETTER_DIGIT.sub("-", _SEPARATORS.sub("-", name.lower())).strip("-")

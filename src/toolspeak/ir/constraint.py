"""What a request may ask its upstream to keep to while it generates, and in which form an upstream takes that."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from toolspeak.ir.json import JsonObject


class ConstraintForm(StrEnum):
    """Whose words a constraint is written in; the facts about an upstream say which it understands."""

    NONE = "none"
    LLAMACPP = "llamacpp"
    """A grammar over the whole answer, or a schema."""
    VLLM = "vllm"
    """Structural tags, which leave text free and bind what stands between marks; or a schema."""
    SGLANG = "sglang"
    """The same tags."""
    OLLAMA = "ollama"
    """A schema of the whole answer, and no other."""
    JSON_SCHEMA = "json_schema"
    """OpenAI's `response_format`, as many servers imitate it."""
    STRICT = "strict"
    """The same to the letter of OpenAI: every property required, nothing beside them."""
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"

    @property
    def leaves_text_free(self) -> bool:
        """Return whether a call can be bound inside of text that is not; a schema binds the whole answer."""
        return self in (ConstraintForm.LLAMACPP, ConstraintForm.VLLM, ConstraintForm.SGLANG)


@dataclass(frozen=True, slots=True)
class TextGrammar:
    """The whole answer fits a grammar in the notation of llama.cpp."""

    gbnf: str


@dataclass(frozen=True, slots=True)
class TextTags:
    """The answer fits a structural tag: this is its `format`."""

    format: JsonObject


@dataclass(frozen=True, slots=True)
class TextSchema:
    """The whole answer is JSON that fits a schema, made ready for the upstream."""

    schema: JsonObject
    name: str = "answer"


Constraint: TypeAlias = TextGrammar | TextTags | TextSchema

"""Constraints on generated text that a request sends to its upstream, and the forms that upstreams accept (CHK-8)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from toolspeak.ir.json import JsonObject


class ConstraintForm(StrEnum):
    """The form in which an upstream accepts a constraint; the facts about the upstream name it."""

    NONE = "none"
    LLAMACPP = "llamacpp"
    """A grammar over the whole answer, or a schema."""
    VLLM = "vllm"
    """Structural tags, which leave text free and constrain the text between marks; or a schema."""
    SGLANG = "sglang"
    """The same tags."""
    OLLAMA = "ollama"
    """A schema of the whole answer only."""
    JSON_SCHEMA = "json_schema"
    """OpenAI's `response_format`, as many servers imitate it."""
    STRICT = "strict"
    """The same with OpenAI's own demands: every property is required, and no others are allowed."""
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"

    @property
    def leaves_text_free(self) -> bool:
        """Whether calls can be constrained inside of free text; a schema constrains the whole answer."""
        return self in (ConstraintForm.LLAMACPP, ConstraintForm.VLLM, ConstraintForm.SGLANG)


@dataclass(frozen=True, slots=True)
class TextGrammar:
    """The whole answer must match a grammar in llama.cpp's notation (GBNF)."""

    gbnf: str


@dataclass(frozen=True, slots=True)
class TextTags:
    """The answer must match a structural tag with this `format`."""

    format: JsonObject


@dataclass(frozen=True, slots=True)
class TextSchema:
    """The whole answer must be JSON that matches a schema, which is already prepared for the upstream."""

    schema: JsonObject
    name: str = "answer"


Constraint: TypeAlias = TextGrammar | TextTags | TextSchema

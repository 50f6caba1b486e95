"""The form of constrained decoding of each kind of server (CHK-8), by the name of its preset.

Presets and probes both read this table: a preset for a server that the user names, a probe for one that it recognises.
Before that, a llama.cpp on any other port than its preset's got no grammar.
"""

from collections.abc import Mapping
from typing import Final

from toolspeak.ir.constraint import ConstraintForm

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

"""In which form each kind of server is told what its answer must look like (CHK-8), by the name of its preset.

A preset says it of a server that the user names, a probe of one that names itself: both read it here.
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

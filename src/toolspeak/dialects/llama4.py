"""Llama 4: Python calls between `<|python_start|>` and `<|python_end|>`, or bare (D32)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shared import BARE_PYTHON, RECOVERY
from toolspeak.dialects.llama_json import PYTHON_TAG

DIALECT = Dialect("llama4", Grammar((PYTHON_TAG, BARE_PYTHON)) | RECOVERY)

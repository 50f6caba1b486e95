"""Llama 3: the message is `{"name": …, "parameters": …}`, perhaps after `<|python_tag|>`; `;` between several (D10)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._pythonic import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects._shared import RECOVERY

PYTHON_TAG = Wrapper(
    ("<|python_tag|>", "<|python_start|>"),
    ("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    (JSON, PYTHON_LIST, PYTHON_CALL),
)

DIALECT = Dialect("llama_json", Grammar((PYTHON_TAG,)) | RECOVERY)

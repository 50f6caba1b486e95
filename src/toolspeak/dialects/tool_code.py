"""Gemma 2 and 3: a fence with the info string `tool_code` around Python calls, often inside `print(…)` (D35)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._pythonic import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects._shared import BARE_PYTHON, RECOVERY

FENCE = Wrapper(("tool_code",), ("```",), (PYTHON_CALL, PYTHON_LIST), fence=True)

DIALECT = Dialect("tool_code", Grammar((FENCE, BARE_PYTHON), result_lines=("```tool_output",)) | RECOVERY, rescues=True)

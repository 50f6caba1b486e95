"""LangChain structured chat: a JSON fence with `action` and `action_input` (D39)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects.react import DIALECT as REACT

DIALECT = Dialect("langchain", Grammar(result_lines=("Observation:",)) | REACT.grammar | RECOVERY)

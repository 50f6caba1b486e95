"""Anthropic style: `<invoke name="f"><parameter name="k">v</parameter></invoke>` inside `<function_calls>` (D23)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._shared import BARE_INVOKE, NAMESPACES, RECOVERY
from toolspeak.dialects._tagged import XML

CALLS = Wrapper(
    (*(f"<{prefix}function_calls>" for prefix in NAMESPACES), "<minimax:tool_call>"),
    (*(f"</{prefix}function_calls>" for prefix in NAMESPACES), "</minimax:tool_call>"),
    (XML,),
)

DIALECT = Dialect("invoke_xml", Grammar((CALLS, BARE_INVOKE), results=(*RESULT_TAGS, "<result>")) | RECOVERY)

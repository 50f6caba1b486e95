"""Seed-OSS: Qwen3-Coder's tags inside `<seed:tool_call>` (D21)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import XML

_CALL = Wrapper(("<seed:tool_call>",), ("</seed:tool_call>",), (XML,))

DIALECT = Dialect("seed", Grammar((_CALL,)) | RECOVERY, rescues=True)

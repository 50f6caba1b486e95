"""Nemotron Nano v2 and Llama-Nemotron: `<TOOLCALL>[{…}]</TOOLCALL>`, sometimes with a Python list inside (D07)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._pythonic import PYTHON_LIST
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import ELEMENTS

CALLS = Wrapper(("<TOOLCALL>",), ("</TOOLCALL>",), (JSON, PYTHON_LIST, ELEMENTS))

DIALECT = Dialect("nemotron", Grammar((CALLS,), results=(*RESULT_TAGS, "<TOOL_RESPONSE>")) | RECOVERY, rescues=True)

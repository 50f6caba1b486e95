"""A typical parser, a pattern and json.loads: it shows which mistakes the corpus can catch."""

import json
import re
from typing import Any

_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def naive(raw: str) -> tuple[list[dict[str, Any]], str]:
    """Return calls and text as such parsers do."""
    calls: list[dict[str, Any]] = []
    for body in _BLOCK.findall(raw):
        try:
            found = json.loads(body)
            calls.append({"name": found["name"], "arguments": found.get("arguments") or {}})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return calls, _BLOCK.sub("", raw).strip()

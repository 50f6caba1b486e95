"""JSON for programs that is safe to print."""

import json
import re

from toolspeak.ir.json import JsonObject

_ODD = re.compile(r"[^ -~\n]")


def safe_json(value: JsonObject) -> str:
    """Write it in UTF-8 but for what cannot be seen, which is escaped: it can only stand in strings."""
    return _ODD.sub(_escaped, json.dumps(value, indent=2, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    return char if char.isprintable() else json.dumps(char)[1:-1]

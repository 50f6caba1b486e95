"""An explanation for programs: one JSON object, safe to print."""

import json
import re

from toolspeak.cli._explanation import Explanation, Kind
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.strict import parse

_ODD = re.compile(r"[^ -~\n]")


def json_text(found: Explanation) -> str:
    """Write it in UTF-8 but for what cannot be seen, which is escaped: it can only stand in strings."""
    return _ODD.sub(_escaped, json.dumps(_object(found), indent=2, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    return char if char.isprintable() else json.dumps(char)[1:-1]


def _object(found: Explanation) -> JsonObject:
    return {
        "summary": found.summary,
        "dialect": found.dialect,
        "tools": [*found.tools],
        "tools_guessed": found.guessed,
        "lossless": found.lossless,
        "same_in_chunks": found.same_in_chunks if found.chunk is not None else None,
        "better_dialects": [*found.better],
        "spans": _spans(found),
        "calls": [
            {"name": call.name, "arguments": parse(call.arguments), "fixes": _fixes(call.fixes)} for call in found.calls
        ],
        "complaints": [
            {"problem": str(one.problem), "name": one.name, "detail": one.detail} for one in found.complaints
        ],
    }


def _spans(found: Explanation) -> list[Json]:
    """List the spans; `index` is the place in `calls` or `complaints`."""
    return [
        {
            "kind": str(span.kind),
            "start": span.start,
            "end": span.start + len(span.text),
            "text": span.text,
            **({"index": span.number - 1} if span.kind in (Kind.CALL, Kind.INVALID) else {}),
        }
        for span in found.spans
    ]


def _fixes(fixes: tuple[Fix, ...]) -> list[Json]:
    return [{"what": fix.what, "path": fix.path} for fix in fixes]

"""What is kept as text: JSON that we have written ourselves."""

from typing import Any

import msgspec

from toolspeak.ir.json import JsonObject
from toolspeak.runs.spec import Spec
from toolspeak.runtime.tools.approval import Approval


def written(value: JsonObject) -> str:
    """Write what a step gave."""
    return msgspec.json.encode(value).decode()


def read(text: str) -> Any:  # noqa: ANN401 # whichever step it was
    """Read what a step gave."""
    return msgspec.json.decode(text)


def written_spec(spec: Spec) -> str:
    """Write a spec; what is as usual is left out."""
    return msgspec.json.encode(spec).decode()


def read_spec(text: str) -> Spec:
    """Read a spec."""
    fields = read(text)
    for name in ("tools", "history"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "approval" in fields:
        fields["approval"] = Approval(fields["approval"])
    return Spec(**fields)

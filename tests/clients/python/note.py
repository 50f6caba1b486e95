"""The tool that every script here offers, what it is asked with, and how it ends.

Each script is started with the gateway's address, a model, a prompt, and, where it knows several, a wire.
"""

import secrets
import sys
from pathlib import Path

KEPT = []


def write_note(text: str) -> str:
    """Write a note into the file out.txt."""
    Path("out.txt").write_text(text, encoding="utf-8")
    KEPT.append(f"kept-{secrets.token_hex(4)}")
    return KEPT[-1]


NAME = "write_note"
DESCRIPTION = "Write a note into the file out.txt."
PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def asked() -> tuple[str, str, str, str]:
    """Return the address, the model, the prompt and the wire."""
    url, model, prompt, *wire = sys.argv[1:]
    return url, model, prompt, "".join(wire)


def end(final: str) -> None:
    """Print the answer; it must quote what the tool said, once."""
    print(final)
    if len(KEPT) != 1 or KEPT[0] not in final:
        sys.exit(f"the tool ran {len(KEPT)} times: {KEPT}; the answer does not quote it")

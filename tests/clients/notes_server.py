"""A small MCP server on stdin and stdout with one tool, `write_note`. Codex offers its tools in a namespace."""

import json
import secrets
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "write_note",
    "description": "Write a note into the file out.txt.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    if method == "initialize":
        server = {"name": "notes", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        Path("out.txt").write_text(params["arguments"]["text"], encoding="utf-8")
        return {"content": [{"type": "text", "text": f"kept-{secrets.token_hex(4)}"}]}
    return {}


def main() -> None:
    """Answer line by line; notifications get no answer."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()

"""Open WebUI: starts its server, gives it a tool, and sends a message as its page does.

    python open_webui.py MODEL PROMPT COMMAND…

The command starts the server; its port is added. The tool is one of its workspace: the server itself runs it.
"""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

START_S = 300
ANSWER_S = 60
TOOL = '''
from pathlib import Path
from secrets import token_hex


class Tools:
    def write_note(self, text: str) -> str:
        """Write a note into the file out.txt.

        :param text: what the note says
        """
        Path("out.txt").write_text(text, encoding="utf-8")
        return f"kept-{token_hex(4)}"
'''


class Server:
    """Talks to the server of Open WebUI."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.token = ""

    def ask(self, path: str, body: object = None) -> dict[str, Any]:
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None:
            try:
                self.ask("/health")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
            else:
                return
        sys.exit(f"Open WebUI did not start within {START_S} s")


def chat(server: Server, model: str, prompt: str) -> dict[str, Any]:
    """Send a first message, and return the answer that is saved."""
    user, answer = str(uuid.uuid4()), str(uuid.uuid4())
    message = {"id": user, "parentId": None, "childrenIds": [], "role": "user", "content": prompt, "models": [model]}
    started = server.ask(
        "/api/chat/completions",
        {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
            "tool_ids": ["notes"],
            "session_id": str(uuid.uuid4()),
            "parent_id": None,
            "user_message": message,
            "id": answer,
        },
    )
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until:
        saved = server.ask(f"/api/v1/chats/{started['chat_id']}")["chat"]["history"]["messages"][answer]
        if saved.get("done") or saved.get("error"):
            return saved
        time.sleep(0.1)
    return sys.exit(f"no answer within {ANSWER_S} s: {saved}")


def main() -> None:
    """Start, ask, stop."""
    model, prompt, *command = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)], stdout=sys.stderr)
    server = Server(port)
    try:
        server.wait(process)
        server.token = server.ask("/api/v1/auths/signin", {"email": "", "password": ""})["token"]
        server.ask(
            "/api/v1/tools/create",
            {"id": "notes", "name": "Notes", "content": TOOL, "meta": {"description": "Writes notes."}},
        )
        listed = [each["id"] for each in server.ask("/api/models")["data"]]
        if model not in listed:
            sys.exit(f"it does not list {model}, but {listed}")
        print(json.dumps(chat(server, model, prompt), ensure_ascii=False))
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()

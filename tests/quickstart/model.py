"""A server that calls itself llama.cpp and has no tool calling: it refuses `tools`, and its model writes text.

The port is its first argument.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from typing_extensions import override

CALL = 'I will look.\n```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```\n'
WORDS = "Yes: it is -4 °C in Oslo, and it snows."
REFUSAL = "tools param requires --jinja flag"
PLAIN = "I cannot know that."


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "llama.cpp"

    def do_GET(self) -> None:
        self._whole({"object": "list", "data": [{"id": "small-model", "object": "model", "owned_by": "llamacpp"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = says(json.dumps(request["messages"]))
        if request.get("tools"):
            self._whole({"error": {"code": 500, "message": REFUSAL, "type": "server_error"}}, 500)
        elif request.get("stream"):
            self._stream(text)
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self._whole(
                {"id": "1", "object": "chat.completion", "created": 1, "model": "small-model", "choices": [choice]}
            )

    def _whole(self, body: object, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self._head("application/json", status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, text: str) -> None:
        self._head("text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events(text):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, media_type: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def says(messages: str) -> str:
    """Answer as a model would that reads its prompt: it calls only what it was taught."""
    if "-4" in messages:
        return WORDS
    return CALL if "get_weather" in messages and "tool_call" in messages else PLAIN


def events(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), 5):
        yield event({"content": text[start : start + 5]}, None)
    yield event({}, "stop")
    yield b"data: [DONE]\n\n"


def event(delta: object, reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small-model", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()

"""A small HTTP server on loopback that answers with JSON, for tests and benches that need only that.

class Model(JsonHandler):
def do_GET(self) -> None:
self.tell({"build_info": "b1"})

with json_server(Model) as url: …
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from typing_extensions import override


class JsonHandler(BaseHTTPRequestHandler):
    """Answers every GET and POST with 200 and a value, and logs nothing."""

    def info(self) -> object:
        """Return the answer to a GET."""
        raise NotImplementedError

    def answer(self, body: Any) -> object:  # noqa: ANN401 # whatever the client sends
        """Return the answer to a POST with this body."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self._tell(self.info())

    def do_POST(self) -> None:
        self._tell(self.answer(json.loads(self.rfile.read(int(self.headers["content-length"])))))

    def _tell(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def json_server(handler: type[JsonHandler]) -> Generator[str]:
    """Serve on a free port until the block ends; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

"""Without an upstream, a server of this machine is taken."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from toolspeak.config import Config, Options, local
from toolspeak.config.local import with_local
from toolspeak.engine.settings import Mode
from toolspeak.errors import BadConfig


class Ollama(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"version": "1", "models": [{"name": "qwen3"}]}' if self.path.startswith("/api/") else b"{}"
        self.send_response_only(200)  # the other one writes a log
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def host() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Ollama) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_is_found_becomes_the_upstream(host: str) -> None:
    options, environ = Options(model="m", mode="force"), {"OLLAMA_HOST": host, "TOOLSPEAK_UPSTREAM_KEY": "k"}
    found = with_local(Config(), options, environ)
    (upstream,) = found.upstreams
    assert (upstream.name, upstream.url, upstream.wire) == ("ollama", f"http://{host}", "ollama")
    assert (upstream.key, found.default, found.settings.mode) == ("k", "m", Mode.FORCE)


def test_where_nothing_is_found_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def places(_: object) -> list[str]:
        return ["http://127.0.0.1:9"]

    monkeypatch.setattr(local, "local_places", places)
    with pytest.raises(
        BadConfig, match=r"at http://127.0.0.1:9: pass --upstream URL or --preset NAME, or start Ollama"
    ):
        with_local(Config(), Options(), {})

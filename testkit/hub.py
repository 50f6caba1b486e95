"""A small server that speaks the API of the Hugging Face Hub: model info, HEAD and GET of files, ranges, errors.

with FakeHub({"org/repo": {"model-Q4_K_M.gguf": b"GGUF…"}}) as hub:
    os.environ["HF_ENDPOINT"] = hub.url
"""

import hashlib
import json
import re
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Self

COMMIT = "c" * 40
PIECE = 4096


class FakeHub:
    """Serves repositories from memory. Faults are fields that a test sets."""

    def __init__(self, repos: Mapping[str, Mapping[str, bytes]]) -> None:
        self.repos = repos
        self.gated: set[str] = set()
        """Repositories that need the token."""
        self.token = "hf_right"
        self.breaks_after: list[int] = []
        """Each entry breaks one download after this many bytes."""
        self.is_down = False
        """Every download breaks before its first byte."""
        self.wrong_sums = False
        self.is_other = False
        """It answers like a different kind of server."""
        self.ranges: list[str] = []
        """The `Range` of each download; empty without one."""
        self.storage = ""
        """Where downloads are redirected to, as the hub redirects to other hosts' storage."""
        self.tokens: list[str] = []
        """The `Authorization` of each download."""
        hub = self

        class Handler(_Handler):
            served = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def sha256(self, data: bytes) -> str:
        return hashlib.sha256(b"other" if self.wrong_sums else data).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    served: FakeHub

    def do_HEAD(self) -> None:
        self._file(with_body=False)

    def do_GET(self) -> None:
        if found := re.fullmatch(r"/api/models/([^/]+/[^/?]+)(?:/revision/[^/?]+)?(?:\?.*)?", self.path):
            self._info(found[1])
        else:
            self._file(with_body=True)

    def _info(self, repo: str) -> None:
        if not self._is_open(repo):
            return
        siblings: list[dict[str, object]] = [
            {
                "rfilename": name,
                "size": len(data),
                "lfs": {"sha256": self.served.sha256(data), "size": len(data), "pointerSize": 134},
            }
            for name, data in self.served.repos[repo].items()
        ]
        if self.served.is_other:
            siblings = [{"rfilename": "model.gguf", "lfs": {"size": 1}}]
        body = json.dumps({"id": repo, "modelId": repo, "sha": COMMIT, "siblings": siblings}).encode()
        self._say(200, {"content-type": "application/json", "content-length": str(len(body))}, body)

    def _file(self, *, with_body: bool) -> None:
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", self.path)
        repo = found[1] if found else ""
        if not found or not self._is_open(repo):
            return
        data = self.served.repos[repo].get(found[2])
        if data is None:
            self._say(404, {"x-error-code": "EntryNotFound", "content-length": "0"})
            return
        etag = self.served.sha256(data)
        headers = {
            "x-repo-commit": COMMIT,
            "etag": f'"{etag}"',
            "x-linked-etag": f'"{etag}"',
            "x-linked-size": str(len(data)),
            "accept-ranges": "bytes",
        }
        if self.served.storage and not with_body:
            there = f"{self.served.storage}{self.path}"
            self._say(302, {**headers, "location": there, "content-length": "0"})
            return
        if not with_body:
            self._say(200, {**headers, "content-length": str(len(data))})
            return
        self._send(data, headers)

    def _send(self, data: bytes, headers: dict[str, str]) -> None:
        asked = self.headers.get("range", "")
        self.served.ranges.append(asked)
        self.served.tokens.append(self.headers.get("authorization", ""))
        begin = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        rest, end = data[begin:], len(data)
        if asked:
            headers = {**headers, "content-range": f"bytes {begin}-{end - 1}/{end}"}
        if self.served.is_down:
            self.close_connection = True
            return
        cut = self.served.breaks_after.pop(0) if self.served.breaks_after else len(rest)
        self._say(206 if asked else 200, {**headers, "content-length": str(len(rest))}, rest[:cut])
        self.close_connection = True

    def _is_open(self, repo: str) -> bool:
        if repo not in self.served.repos:
            self._say(404, {"x-error-code": "RepoNotFound", "content-length": "0"})
        elif repo in self.served.gated and self.headers.get("authorization") != f"Bearer {self.served.token}":
            self._say(401, {"x-error-code": "GatedRepo", "content-length": "0"})
        else:
            return True
        return False

    def _say(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for start in range(0, len(body), PIECE):
            self.wfile.write(body[start : start + PIECE])

    def log_message(self, format: str, *args: object) -> None:  # pyright: ignore[reportImplicitOverride]
        pass

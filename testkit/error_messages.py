"""Runs the command lines of tests/unit/cli/error_messages.txt, and rewrites the file: `just error-messages`.

The file is its own list of cases. To add one, write its line below the heading of its command and run the recipe:

    $ toolspeak serve --port 99999

A line may begin with files that the command needs: `$ echo 'server.port = "x"' > c.toml; toolspeak serve --config
c.toml`. Each line runs in an empty folder, in this process, with no configuration, no terminal and no local server:
`127.0.0.1:9` is closed, and `127.0.0.1:8080/NNN` is a server that answers every request with the status NNN.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from unittest.mock import patch

from typing_extensions import override

from toolspeak.cli import main
from toolspeak.config import local

FILE: Final = Path(__file__).parents[1] / "tests" / "unit" / "cli" / "error_messages.txt"
_PROMPT: Final = "$ "
_SERVER: Final = "127.0.0.1:8080"
_FOLDER: Final = "/home/ada/project"
_RUN_ID: Final = re.compile(r"\b[0-9a-f]{8,}\b")


@dataclass(frozen=True)
class Case:
    """A command line and what it printed on standard error, with its exit status as the last line."""

    line: str
    said: str


def read_cases(text: str) -> list[Case]:
    """Return the cases of the file."""
    blocks = [block for block in text.strip("\n").split("\n\n") if block.startswith(_PROMPT)]
    return [Case(first.removeprefix(_PROMPT), said) for first, _, said in (each.partition("\n") for each in blocks)]


def rewritten(text: str) -> str:
    """Return the file with what its command lines print now. Two command lines need no empty line between them."""
    spaced = re.sub(r"\n(?=\$ )", "\n\n", text)
    return "\n\n".join(map(_fresh, filter(None, re.split(r"\n{2,}", spaced.strip("\n"))))) + "\n"


def _fresh(block: str) -> str:
    if not block.startswith(_PROMPT):
        return block
    line = block.split("\n", 1)[0]
    return f"{line}\n{run_case(line.removeprefix(_PROMPT))}"


def run_case(line: str) -> str:
    """Run one command line; return its messages, and its exit status as the last line."""
    before = Path.cwd()
    errors, output = io.StringIO(), io.StringIO()
    with _answering() as address, tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve() / "project"
        folder.mkdir()
        *files, command = (part.strip() for part in line.replace(_SERVER, address).split("; "))
        environ = {"HOME": str(folder.parent), "PATH": "/nowhere", "NO_COLOR": "1", "COLUMNS": "100"}
        empty = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        try:
            os.chdir(folder)
            for each in files:
                _write_file(each)
            with (
                patch.dict(os.environ, environ, clear=True),
                patch.object(sys, "stdin", empty),
                patch.object(local, "local_places", _no_places),
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(errors),
            ):
                status = _status(shlex.split(command)[1:])
        finally:
            os.chdir(before)
        said = errors.getvalue().replace(str(folder), _FOLDER).replace(str(folder.parent), str(Path(_FOLDER).parent))
    # An empty line ends a case in the file.
    said = re.sub(r"\n\s*\n", "\n", _RUN_ID.sub("1a2b3c4d", said.replace(address, _SERVER)).strip())
    return f"{said}\nexit {status}".lstrip("\n")


def _status(args: list[str]) -> object:
    try:
        main(args)
    except SystemExit as ended:
        return ended.code


def _no_places(environ: Mapping[str, str]) -> list[str]:
    """Return where a local server is looked for: at a closed port."""
    del environ
    return ["http://127.0.0.1:9"]


def _write_file(line: str) -> None:
    """Do what `echo 'text' > file` does."""
    _, text, _, name = shlex.split(line)
    Path(name).write_text(text + "\n", encoding="utf-8")


class _Refuses(BaseHTTPRequestHandler):
    """Answers with the status that the path begins with."""

    def do_GET(self) -> None:
        """Refuse, or list one model below /models."""
        self.rfile.read(int(self.headers.get("content-length", "0")))
        status = int(self.path.split("/")[1])
        said = f"the server says {status}"
        body = b'{"error": {"message": "%b"}}' % said.encode()
        if self.path.endswith("/models") and status not in (401, 500):
            status, body = 200, b'{"data": [{"id": "small"}]}'
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 # the name that http.server looks for

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def _answering() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refuses) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def headings(text: str) -> Iterator[str]:
    """Yield the commands that have a heading."""
    return (line.removeprefix("## ") for line in text.splitlines() if line.startswith("## "))


if __name__ == "__main__":
    FILE.write_text(rewritten(FILE.read_text(encoding="utf-8")), encoding="utf-8")

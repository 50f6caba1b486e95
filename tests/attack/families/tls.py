"""TLS where there is none, and upstreams whose TLS is wrong: no key leaves the gateway, no traceback, no stall."""

import contextlib
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

from testkit.protocols import WIRES, question
from testkit.scripted_upstream import listening
from tests.attack.arena import Arena, Gateway, bearer
from tests.attack.model import COLD

HELD_BEFORE = True
CLIENT_HELLO = bytes.fromhex(
    "16030100c5010000c10303" + "ab" * 32 + "20" + "cd" * 32 + "0006130113021303" + "01000072" + "00" * 114
)
STRANGE = {
    "a TLS ClientHello": CLIENT_HELLO,
    "a ClientHello ten times": CLIENT_HELLO * 10,
    "a cut ClientHello": CLIENT_HELLO[:20],
    "a TLS alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "an SSLv2 hello": b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + b"\x07\x00\xc0" * 12,
    "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "a PROXY line": b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "PROXY version 2": b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + b"\x7f\x00\x00\x01" * 3,
    "SOCKS5": b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "zeros": b"\0" * 100_000,
    "every byte": bytes(range(256)) * 400,
}
KINDS = ("good", "self-signed", "expired", "another host", "cut", "silent", "plain", "garbage", "reset", "closed early")
TIMEOUTS = "[upstreams.{name}.timeouts]\nconnect = 2.0\nfirst_byte = 3.0\n"
LATEST_S = 10.0


def attack(arena: Arena) -> None:
    folder = arena.fresh_folder()
    _certificates(folder)
    with listening() as upstream, contextlib.ExitStack() as stack:
        upstream.answers(COLD)
        servers = {kind: _TlsServer(kind, folder) for kind in KINDS}
        for server in servers.values():
            stack.callback(server.close)
        more = "".join(
            f'[upstreams.{_name(kind)}]\nurl = "https://127.0.0.1:{server.port}/v1"\nwire = "openai_chat"\n'
            f'key = "sk-tls-77aa"\nretries = 0\n{TIMEOUTS.format(name=_name(kind))}'
            for kind, server in servers.items()
        )
        env = {"SSL_CERT_FILE": str(folder / "ca.pem")}
        with arena.gateway(arena.config(upstream.port, more), warm=WIRES, env=env) as gateway:
            _plain_port(arena, gateway)
            for server in servers.values():
                for wire in WIRES[:1] if arena.quick else WIRES:
                    for stream in (False, True):
                        _upstream(arena, gateway, server, wire, stream)
    if not servers["good"].taken:
        arena.notes.append("the control with a good certificate got no request either")


def _name(kind: str) -> str:
    return kind.replace(" ", "_").replace("-", "_")


def _plain_port(arena: Arena, gateway: Gateway) -> None:
    for name, data in STRANGE.items():
        for pieces in (1, 7) if arena.quick else (1, 2, 7, 40):
            with arena.attempt(gateway, f"{name} in {pieces} pieces to the plain port") as attempt:
                said = gateway.raw(data, 0.3, pieces)
                if b"HTTP/1.1 200" in said and "PROXY" not in name:
                    attempt.got(f"an answer: {said[:60]!r}")


def _upstream(arena: Arena, gateway: Gateway, server: "_TlsServer", wire: str, stream: bool) -> None:
    kind = server.kind
    server.taken.clear()
    asked = question(wire, stream=stream, model=f"{_name(kind)}:m")
    with arena.attempt(gateway, f"{wire}: an upstream that is {kind}, stream {stream}") as attempt:
        began = time.monotonic()
        reply = gateway.ask("POST", asked.path, asked.body, bearer(), seconds=LATEST_S + 5)
        if kind == "good":
            return
        if any(b"sk-tls-77aa" in data for data in server.taken):
            attempt.got("the key was sent")
        if reply.status == 200 and not stream:
            attempt.got("status 200")
        if time.monotonic() - began > LATEST_S:
            attempt.got(f"an answer only after {time.monotonic() - began:.0f} s")


def _certificates(folder: Path) -> None:
    """Make an authority that the gateway trusts, and certificates of it and of none."""
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    authority = ["-subj", "/CN=attack", "-addext", "basicConstraints=critical,CA:TRUE", "-days", "30"]
    _run(folder, "openssl", "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", *authority)
    for kind, host in (("good", "IP:127.0.0.1"), ("expired", "IP:127.0.0.1"), ("another host", "DNS:example.com")):
        name = _name(kind)
        _run(folder, "openssl", "req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text(f"subjectAltName={host}\n")
        then = ["faketime", "-f", "-90d"] if kind == "expired" else []
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "20", "-extfile", "ext"]
        _run(folder, *then, "openssl", "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    own = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30"]
    _run(folder, "openssl", "req", "-x509", *new, "-keyout", "self_signed.key", "-out", "self_signed.pem", *own)
    (folder / "ca.pem").chmod(0o644)


def _run(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=30)


class _TlsServer:
    """Accepts connections and misbehaves as its kind says; `taken` is what it was sent in clear text."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.taken: list[bytes] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        name = _name(kind) if (folder / f"{_name(kind)}.pem").exists() else "good"
        self._context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(5)
            match self.kind:
                case "closed early":
                    pass
                case "cut":
                    connection.recv(1)
                case "silent":
                    time.sleep(8)
                case "plain":
                    self.taken.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                case "garbage":
                    connection.recv(65536)
                    connection.sendall(b"\x16\x03\x03\xff\xff" + b"\xab" * 70_000)
                case "reset":
                    connection.recv(65536)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                case _:
                    with self._context.wrap_socket(connection, server_side=True) as secure:
                        self.taken.append(secure.recv(65536))
                        secure.sendall(b"HTTP/1.1 500 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

"""Requests leave through the proxy and with the certificates that are set, and local ones never do (SAFE-8)."""

import base64
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from testkit.protocols import answering, message_of, question
from testkit.scripted_upstream import listening
from testkit.vendor_answers import WHOLES, Answer
from tests.gateway.scene import Reply, config_of, serving, towards
from toolspeak.config import Options, with_options
from toolspeak.config.file import parse_config
from toolspeak.config.overlay import doubts
from toolspeak.config.shape import Config, Server, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.errors import BadConfig
from toolspeak.runtime.outbound import Outbound

COLD = Answer("It is cold.")
PASSWORD = "proxy-canary-77aa"
FAR = "http://models.example.test/v1"


@dataclass
class Proxy:
    """An HTTP proxy that answers for every host itself; `heads` are the requests that it got."""

    port: int
    tls: ssl.SSLContext | None = None
    heads: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://user:{PASSWORD}@127.0.0.1:{self.port}"

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self._answer(connection)
                except OSError:
                    continue

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        head = self._read(connection)
        if head.startswith("CONNECT ") and self.tls is not None:
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            with self.tls.wrap_socket(connection, server_side=True) as inner:
                head = self._read(inner)
                inner.sendall(_body(head))
        else:
            connection.sendall(_body(head))

    def _read(self, connection: socket.socket) -> str:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                raise OSError("it closed")
            data += piece
        head = data.decode("latin-1")
        self.heads.append(head)
        return head


def _body(head: str) -> bytes:
    listed = {"object": "list", "data": [{"id": "m"}]}
    body = json.dumps(listed if head.startswith("GET ") else WHOLES["openai_chat"](COLD)).encode()
    length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{length}".encode() + body


@contextmanager
def proxying(tls: ssl.SSLContext | None = None) -> Generator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(listener.getsockname()[1], tls)
        thread = threading.Thread(target=proxy.serve, args=(listener,), daemon=True)
        thread.start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def configured(text: str, **environ: str) -> Config:
    config = with_options(parse_config(text, "t.toml", environ), Options(), environ)
    return replace(config, server=Server(port=0, probe=Depth.OFF))


def ask(config: Config) -> Reply:
    asked = question("openai_chat")
    with serving(config) as gateway:
        return gateway.post(asked.path, asked.body)


@pytest.mark.parametrize("level", ["upstream", "network", "environment"])
def test_requests_go_through_the_proxy_that_is_set_safe8(level: str) -> None:
    """HTTPS_PROXY was ignored, and there was no setting."""
    upstream = f'[upstreams.far]\nurl = "{FAR}"\n'
    with proxying() as proxy:
        texts: dict[str, tuple[str, dict[str, str]]] = {
            "upstream": (f'[network]\nproxy = "none"\n{upstream}proxy = "{proxy.url}"\n', {}),
            "network": (f'[network]\nproxy = "{proxy.url}"\n{upstream}', {}),
            "environment": (upstream, {"HTTP_PROXY": proxy.url}),
        }
        text, environ = texts[level]
        config = configured(text, **environ)
        assert ask(config).status == 200
    assert any(head.startswith(f"POST {FAR}/chat/completions ") for head in proxy.heads)
    sent = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    assert all(f"Proxy-Authorization: Basic {sent}" in head for head in proxy.heads)
    assert PASSWORD not in repr(config)


def test_requests_to_this_machine_never_use_a_proxy_safe8() -> None:
    """A company's proxy in the environment must not see local prompts, nor make a local server unreachable."""
    with listening() as upstream:
        upstream.answers(answering(COLD))
        nowhere = "http://127.0.0.1:9"
        text = f'[network]\nproxy = "{nowhere}"\n[upstreams.near]\nurl = "http://localhost:{upstream.port}/v1"\n'
        assert ask(configured(text, HTTP_PROXY=nowhere, http_proxy=nowhere)).status == 200


@pytest.mark.parametrize(
    ("exempt", "uses"),
    [
        ("", True),
        ("*", False),
        ("example.test", False),
        (".example.test", False),
        ("models.example.test:80", True),
        ("other.test, models.example.test", False),
        ("ample.test", True),
    ],
)
def test_no_proxy_names_hosts_and_their_subdomains_safe8(exempt: str, uses: bool) -> None:
    text = f'[upstreams.far]\nurl = "{FAR}"\n'
    (upstream,) = configured(text, HTTP_PROXY="proxy.test:3128", NO_PROXY=exempt).upstreams
    assert upstream.outbound.proxy_url == ("http://proxy.test:3128" if uses else None)


def test_no_proxy_names_networks_and_https_has_its_own_variable_safe8() -> None:
    text = '[upstreams.far]\nurl = "https://10.1.2.3/v1"\n'
    assert configured(text, HTTP_PROXY="http://p:1").upstreams[0].outbound.proxy_url is None
    assert configured(text, HTTPS_PROXY="http://p:1").upstreams[0].outbound.proxy_url == "http://p:1"
    exempt = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}
    assert configured(text, **exempt).upstreams[0].outbound.proxy_url is None


@pytest.mark.parametrize("value", [f"socks5://u:{PASSWORD}@p:1080", f"ftp://{PASSWORD}", f"http://{PASSWORD} x"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password_safe8(value: str) -> None:
    text = f'[upstreams.far]\nurl = "{FAR}"\n'
    with pytest.raises(BadConfig, match="HTTP_PROXY: is ") as caught:
        configured(text, HTTP_PROXY=value)
    assert PASSWORD not in str(caught.value)
    with pytest.raises(BadConfig, match=r"t\.toml:2: network\.proxy: is ") as caught:
        parse_config(f'[network]\nproxy = "{value}"\n', "t.toml", {})
    assert PASSWORD not in str(caught.value)


def test_a_proxy_that_is_not_there_is_named_safe8() -> None:
    far = replace(Upstream("far", FAR, retries=0), outbound=Outbound(f"http://user:{PASSWORD}@127.0.0.1:9"))
    reply = ask(config_of(far))
    assert reply.status == 502
    assert message_of("openai_chat", reply.json) == "no connection to the proxy at 127.0.0.1:9: Connection refused"


def test_a_proxy_that_reads_a_key_is_doubted_safe8() -> None:
    text = f'[upstreams.far]\nurl = "{FAR}"\nkey = "sk-far-1234"\nproxy = "http://p:1"\n'
    assert any("readable on the way and its proxy" in doubt for doubt in doubts(configured(text)))


# ---------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a self-signed certificate of models.example.test, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ("-subj", "/CN=models.example.test", "-addext", "subjectAltName=DNS:models.example.test")
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text(cert.read_text() + key.read_text())
    return both


def far_https(proxy: Proxy, **more: str) -> Config:
    outbound = Outbound(proxy.url, **more)
    return config_of(replace(Upstream("far", FAR.replace("http:", "https:"), retries=0), outbound=outbound))


def test_a_private_authority_is_trusted_where_it_is_named_safe8(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with proxying(tls) as proxy:
        refused = ask(far_https(proxy))
        assert refused.status == 502
        assert "to trust a private authority, set ca_file" in message_of("openai_chat", refused.json)
        assert ask(far_https(proxy, ca_file=str(certificate))).status == 200
    assert any(head.startswith("CONNECT models.example.test:443 ") for head in proxy.heads)


def test_a_client_certificate_is_sent_safe8(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(certificate)
    with proxying(tls) as proxy:
        assert ask(far_https(proxy, ca_file=str(certificate))).status == 502
        with_own = far_https(proxy, ca_file=str(certificate), client_cert=str(certificate))
        assert ask(with_own).status == 200


def test_files_that_cannot_be_used_are_named_safe8(tmp_path: Path) -> None:
    file = tmp_path / "no.pem"
    file.write_text("no certificate")
    text = f'[network]\nca_file = "{file}"\nclient_key = "relative.pem"\nclient_cert = "/nowhere/x.pem"\n'
    with pytest.raises(BadConfig) as caught:
        parse_config(text, "t.toml", {})
    first, second, third = caught.value.problems
    assert first.startswith(f"t.toml:2: network.ca_file: '{file}' has no certificates in PEM form")
    assert "network.client_key: 'relative.pem' is not an absolute path" in second
    assert "network.client_cert: there is no file '/nowhere/x.pem'" in third
    text = f'[upstreams.far]\nurl = "{FAR}"\nclient_cert = "{file}"\n'
    with pytest.raises(BadConfig, match="upstream 'far': its client_cert and client_key cannot be used together"):
        configured(text)


def test_upstreams_without_settings_are_as_before_safe8() -> None:
    with listening() as upstream:
        upstream.answers(answering(COLD))
        assert ask(config_of(towards(upstream))).status == 200

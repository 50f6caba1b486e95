"""The gateway speaks HTTPS with certificates that are replaced while it serves (OPS-2)."""

import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from testkit.grammar import read_stream
from testkit.protocols import answering, question
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import soon
from tests.gateway.signalled_process import LONG, PATIENCE, Process, configured, drip, started, streaming
from tests.gateway.worker_scene import working
from toolspeak.cli import main
from toolspeak.config.file import parse_config
from toolspeak.config.server_tls import ServerTls
from toolspeak.errors import BadConfig

TAKEN = "the certificate was reloaded"
COLD = Answer("Cold.")
USAGE = "keyUsage=critical,keyCertSign,cRLSign"
"""Python 3.13 trusts no authority without it."""


def run(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=30)


def authority(folder: Path, name: str = "ca") -> Path:
    """Make an authority: NAME.pem and NAME.key."""
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30")
    ends = ("-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", USAGE)
    run(folder, "openssl", "req", "-x509", *new, "-keyout", f"{name}.key", "-out", f"{name}.pem", *ends)
    return folder / f"{name}.pem"


def issue(folder: Path, name: str, *, by: str = "ca", days: int = 100, kind: str = "rsa:2048") -> Path:
    """Make a certificate for 127.0.0.1: NAME.pem and NAME.key."""
    new = ("-newkey", kind, "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    curve = ("-pkeyopt", "ec_paramgen_curve:prime256v1") if kind == "ec" else ()
    run(folder, "openssl", "req", *new, *curve)
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    signing = ("-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial", "-days", str(days), "-extfile", "ext")
    run(folder, "openssl", "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return folder / f"{name}.pem"


def use(folder: Path, name: str) -> None:
    """Let the files of the gateway be those of this certificate."""
    for end in ("key", "pem"):
        (folder / f"new.{end}").write_bytes((folder / f"{name}.{end}").read_bytes())
        (folder / f"new.{end}").rename(folder / f"live.{end}")


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    for each in ("ca", "other"):
        authority(folder, each)
    issue(folder, "one")
    issue(folder, "two", kind="ec")
    issue(folder, "soon", days=5)
    issue(folder, "anna")
    issue(folder, "bert", by="other")
    return folder


@pytest.fixture
def folder(issued: Path, tmp_path: Path) -> Path:
    for each in issued.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    use(tmp_path, "one")
    return tmp_path


def encrypted(folder: Path, port: int, more: str = "") -> str:
    tls = f'[server.tls]\ncertificate = "{folder}/live.pem"\nkey = "{folder}/live.key"\n{more}\n'
    return configured(port).replace("[upstreams.box]", f"{tls}[upstreams.box]")


def trusting(folder: Path, name: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if name:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def shown(gateway: Process, context: ssl.SSLContext, name: str | None = "127.0.0.1") -> str:
    """Return the digest of the certificate that a new connection is shown."""
    with socket.create_connection(("127.0.0.1", gateway.served.port), 10) as plain:
        context.check_hostname = name is not None
        with context.wrap_socket(plain, server_hostname=name) as connection:
            return sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()


def digest(folder: Path, name: str) -> str:
    return sha256(ssl.PEM_cert_to_DER_cert((folder / f"{name}.pem").read_text())).hexdigest()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_turn_over_https_ops2(folder: Path, version: ssl.TLSVersion) -> None:
    context = trusting(folder)
    context.minimum_version = context.maximum_version = version
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=context) as gateway:
        upstream.answers(drip)
        assert "listens on https://127.0.0.1:" in gateway.log.read_text()
        client, bodies = streaming(gateway.served, "anthropic")
        client.join(20)
        assert read_stream("anthropic", bodies[0]).text == LONG.text


def test_old_versions_of_tls_and_plain_http_get_nothing_ops2(folder: Path) -> None:
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=trusting(folder)) as gateway:
        old = trusting(folder)
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            old.minimum_version = ssl.TLSVersion.TLSv1
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            shown(gateway, old)
        with socket.create_connection(("127.0.0.1", gateway.served.port), 10) as plain:
            plain.sendall(b"GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert b"HTTP/1.1 200" not in plain.recv(100)
        assert gateway.served.ask("GET", "/live").status == 200
        assert "Traceback" not in gateway.log.read_text()


def test_a_client_that_never_shakes_hands_is_closed_ops2(folder: Path) -> None:
    text = encrypted(folder, 9) + "[limits]\nheader_seconds = 1.0\n"
    with started(folder, text, tls=trusting(folder)) as gateway:
        with socket.create_connection(("127.0.0.1", gateway.served.port), 10) as silent:
            assert silent.recv(1) == b""
        assert "Traceback" not in gateway.log.read_text()


@pytest.mark.parametrize("name", [None, "127.0.0.1"])
def test_a_new_certificate_is_taken_while_a_stream_goes_on_ops2(folder: Path, name: str | None) -> None:
    """The second certificate has a key of another kind, too."""
    context = trusting(folder)
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=trusting(folder)) as gateway:
        upstream.answers(drip)
        assert shown(gateway, context, name) == digest(folder, "one")
        client, bodies = streaming(gateway.served, "anthropic")
        upstream.wait_for(1)
        use(folder, "two")
        assert gateway.says(TAKEN)
        assert shown(gateway, context, name) == digest(folder, "two")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert shown(gateway, context, name) == digest(folder, "two")
        client.join(20)
        assert read_stream("anthropic", bodies[0]).text == LONG.text
        assert "Traceback" not in gateway.log.read_text()


def resumed(gateway: Process, context: ssl.SSLContext, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession, bool]:
    """Take a request on a new connection; return its session, and whether it was resumed."""
    with (
        socket.create_connection(("127.0.0.1", gateway.served.port), 10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection,
    ):
        connection.sendall(b"GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert connection.session
        return connection.session, bool(connection.session_reused)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_resumed_across_a_new_certificate_ops2(folder: Path, version: ssl.TLSVersion) -> None:
    context = trusting(folder)
    context.minimum_version = context.maximum_version = version
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=trusting(folder)) as gateway:
        session, _ = resumed(gateway, context, None)
        session, is_reused = resumed(gateway, context, session)
        assert is_reused
        use(folder, "two")
        assert gateway.says(TAKEN)
        resumed(gateway, context, session)
        assert shown(gateway, context) == digest(folder, "two")


def test_sighup_takes_other_files_ops2(folder: Path) -> None:
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=trusting(folder)) as gateway:
        gateway.file.write_text(encrypted(folder, upstream.port).replace("live.", "two."))
        gateway.process.send_signal(signal.SIGHUP)
        assert gateway.says("the configuration was reloaded")
        assert shown(gateway, trusting(folder)) == digest(folder, "two")


def test_a_pair_that_does_not_fit_is_named_and_the_old_one_stays_ops2(folder: Path) -> None:
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=trusting(folder)) as gateway:
        (folder / "live.pem").write_bytes((folder / "two.pem").read_bytes())
        assert gateway.says("The gateway goes on with the certificate that it has")
        assert f"server.tls.key: '{folder}/live.key' is not the key of the certificate" in gateway.log.read_text()
        assert shown(gateway, trusting(folder)) == digest(folder, "one")
        (folder / "live.key").write_bytes((folder / "two.key").read_bytes())
        assert gateway.says(TAKEN)
        assert shown(gateway, trusting(folder)) == digest(folder, "two")


def test_all_workers_take_a_new_certificate_without_a_restart_ops2(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    with (
        listening() as upstream,
        working(monkeypatch, folder, encrypted(folder, upstream.port), tls=trusting(folder)) as pool,
    ):
        before = pool.workers
        use(folder, "two")
        assert soon(lambda: pool.process.log.read_text().count(TAKEN) == 2, PATIENCE)
        for worker in before:
            with pool.only(worker):
                assert shown(pool.process, trusting(folder)) == digest(folder, "two")
        assert pool.workers == before


def test_a_client_needs_a_certificate_of_the_authority_ops2(folder: Path) -> None:
    (folder / "clients.pem").write_bytes((folder / "ca.pem").read_bytes())
    text = encrypted(folder, 9, f'client_ca = "{folder}/clients.pem"')
    with started(folder, text, tls=trusting(folder, "anna")) as gateway:
        assert gateway.served.ask("GET", "/live").status == 200
        for name in ("", "bert"):
            gateway.served.tls = trusting(folder, name)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                gateway.served.ask("GET", "/live")
        # The authority is replaced: its clients are refused from now on.
        (folder / "clients.pem").write_bytes((folder / "other.pem").read_bytes())
        assert gateway.says(TAKEN)
        assert gateway.served.ask("GET", "/live").status == 200
        gateway.served.tls = trusting(folder, "anna")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            gateway.served.ask("GET", "/live")
        assert "Traceback" not in gateway.log.read_text()


def test_a_drain_does_not_wait_for_idle_clients_ops2(folder: Path) -> None:
    """A closed TLS connection waits for the client's goodbye, for 30 s."""
    with (
        started(folder, encrypted(folder, 9), tls=trusting(folder)) as gateway,
        socket.create_connection(("127.0.0.1", gateway.served.port), 10) as plain,
        trusting(folder).wrap_socket(plain, server_hostname="127.0.0.1") as idle,
    ):
        idle.sendall(b"GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b"200" in idle.recv(100)
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.end()[0] == 0
        assert time.monotonic() - began < 8


def test_a_certificate_that_expires_soon_is_told_ops2(folder: Path) -> None:
    use(folder, "soon")
    with started(folder, encrypted(folder, 9), tls=trusting(folder)) as gateway:
        expires = ServerTls(f"{folder}/live.pem").expires()
        assert expires
        assert timedelta(days=4) < expires - datetime.now(UTC) < timedelta(days=6)
        assert gateway.says(f"live.pem expires on {expires:%Y-%m-%d %H:%M} UTC, in 4 days. Renew it")
        use(folder, "two")
        assert gateway.says(TAKEN)
        assert gateway.log.read_text().count("expires on") == 1


def problem_of(folder: Path, **tls: str) -> str:
    lines = "\n".join(f'{name} = "{folder}/{value}"' for name, value in tls.items())
    with pytest.raises(BadConfig) as caught:
        parse_config(f"[server.tls]\n{lines}\n", "t.toml", {})
    return str(caught.value).replace(str(folder), "F")


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        (
            {"certificate": "one.pem", "key": "two.key"},
            "key: 'F/two.key' is not the key of the certificate",
        ),
        ({"certificate": "one.key", "key": "one.key"}, "certificate: 'F/one.key' has no certificate in PEM form ("),
        ({"certificate": "one.pem"}, "key: 'F/one.pem', which needs one where key is not set, has no key in PEM form"),
        ({"certificate": "one.pem", "key": "one.pem"}, "key: 'F/one.pem' has no key in PEM form without a password"),
        (
            {"certificate": "one.pem", "key": "locked.key"},
            "key: 'F/locked.key' has no key in PEM form without",
        ),
        ({"certificate": "none.pem", "key": "one.key"}, "certificate: there is no file 'F/none.pem'"),
        ({"key": "one.key"}, "key: is given without certificate: give both"),
        ({"client_ca": "ca.pem"}, "client_ca: is given without certificate: give both"),
    ],
)
def test_what_is_wrong_with_the_files_is_named_at_the_start_ops2(
    folder: Path, tls: Mapping[str, str], problem: str
) -> None:
    run(folder, "openssl", "rsa", "-aes256", "-passout", "pass:x", "-in", "one.key", "-out", "locked.key")
    said = problem_of(folder, **tls)
    assert f"server.tls.{problem}" in said
    assert len(said.splitlines()) == 1
    assert said.startswith(("t.toml:1: ", "t.toml:2: ", "t.toml:3: "))


def test_config_check_shows_the_certificate_ops2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "checked.toml"
    file.write_text(encrypted(folder, 9, f'client_ca = "{folder}/ca.pem"'))
    with pytest.raises(SystemExit):
        main(["config", "check", str(file)])
    expires = ServerTls(f"{folder}/live.pem").expires()
    assert expires
    assert (
        f"certificate  {folder}/live.pem, expires {expires:%Y-%m-%d}; clients need one too" in capsys.readouterr().out
    )


def test_expiry_is_read_of_every_form_of_date_ops2(folder: Path) -> None:
    """A year from 2050 on is written with four digits."""
    issue(folder, "far", days=365 * 40)
    found = ServerTls(f"{folder}/far.pem").expires()
    assert found
    assert found.year in (datetime.now(UTC).year + 39, datetime.now(UTC).year + 40)
    assert ServerTls(f"{folder}/one.key").expires() is None


def test_no_request_fails_while_certificates_are_swapped_ops2(folder: Path) -> None:
    with listening() as upstream, started(folder, encrypted(folder, upstream.port), tls=trusting(folder)) as gateway:
        upstream.answers(answering(COLD))
        ends = threading.Event()
        failed: list[str] = []

        def ask() -> None:
            asked = question("openai_chat")
            while not ends.is_set():
                try:
                    status = gateway.served.post(asked.path, asked.body).status
                except OSError as error:
                    failed.append(repr(error))
                else:
                    failed.extend([str(status)] if status != 200 else [])

        client = threading.Thread(target=ask)
        client.start()
        for count, name in enumerate(("two", "one"), 1):
            use(folder, name)
            assert soon(lambda: gateway.log.read_text().count(TAKEN) == count, PATIENCE)  # noqa: B023 # it is called here
        ends.set()
        client.join(20)
        assert failed == []

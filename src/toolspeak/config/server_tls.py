"""`[server.tls]`: the certificate of the gateway, its check, and its date of expiry (OPS-2)."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from toolspeak.declaration import setting
from toolspeak.errors import BadConfig

_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
"""Tags of DER."""
_LONG: Final = 0x80
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_MISMATCH: Final = ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
"""What OpenSSL says of a key that belongs to another certificate, of the same kind (RSA, EC) and of another kind."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """`[server.tls]`: the gateway speaks HTTPS. Its files are read again on SIGHUP and when they change."""

    certificate: str = setting(
        "",
        "PEM file with the certificate of the gateway, followed by the intermediate certificates.",
        otherwise="none: the gateway speaks HTTP",
        form="file",
    )
    key: str = setting(
        "",
        "PEM file with the key of `certificate`, without a password.",
        otherwise="in the file of `certificate`",
        form="file",
    )
    client_ca: str = setting(
        "",
        "PEM file with certificates of authorities. A client must present a certificate of one of them, for every "
        "path.",
        otherwise="none: clients need no certificate",
        form="ca_file",
    )

    @property
    def is_on(self) -> bool:
        """Whether the gateway speaks HTTPS."""
        return bool(self.certificate)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return tuple(_path(each) for each in (self.certificate, self.key, self.client_ca) if each)

    def context(self) -> ssl.SSLContext:
        """Return a context with what the files hold now. Raises `BadConfig`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        try:
            key = _path(self.key) if self.key else None
            context.load_cert_chain(_path(self.certificate), key, password=_no_password)
        except OSError as error:  # ssl.SSLError is one
            raise BadConfig(f"server.tls.{self._pair_problem(error)}") from None
        if self.client_ca:
            self._ask_clients(context)
        return context

    def _ask_clients(self, context: ssl.SSLContext) -> None:
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session is not verified again: a client whose authority was removed could go on for hours.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        try:
            context.load_verify_locations(_path(self.client_ca))
        except OSError as error:
            raise BadConfig(f"server.tls.client_ca: {self.client_ca!r} cannot be used: {_words(error)}") from None

    def _pair_problem(self, error: OSError) -> str:
        """Return the setting that is wrong, and why."""
        if isinstance(error, ssl.SSLError) and error.reason in _MISMATCH:
            return f"key: {self.key or self.certificate!r} is not the key of the certificate {self.certificate!r}"
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(_path(self.certificate))
        except OSError as broken:
            return f"certificate: {self.certificate!r} has no certificate in PEM form ({_words(broken)})"
        where = repr(self.key) if self.key else f"{self.certificate!r}, which needs one where key is not set,"
        return f"key: {where} has no key in PEM form without a password ({_words(error)})"

    def expires(self) -> datetime | None:
        """Return when the first certificate of the file expires; None if that cannot be read."""
        try:
            text = _path(self.certificate).read_text("latin-1")
            pem = text[text.index(_BEGIN) : text.index(_END) + len(_END)]
            return _not_after(ssl.PEM_cert_to_DER_cert(pem))
        except (OSError, ValueError, IndexError, StopIteration):
            return None


NO_SERVER_TLS: Final = ServerTls()


def _no_password() -> str:
    """Refuse a key with a password: OpenSSL would ask for it on the terminal, and the gateway would not start."""
    raise OSError("it has a password")


def _path(file: str) -> Path:
    return Path(file).expanduser()


def _words(error: OSError) -> str:
    """Return what OpenSSL or the system says, without the line of CPython's source: `[SSL] PEM lib (_ssl.c:3928)`."""
    said = error.strerror or str(error.args[0] if error.args else type(error).__name__)
    return said.partition(" (_ssl.c")[0].removeprefix("[SSL] ")


def _not_after(certificate: bytes) -> datetime:
    """Return the end of the validity of a certificate in DER.

    `ssl` shows it only for a peer whose certificate was verified. The fields before it (RFC 5280, 4.1) are the version,
    which is optional, the serial number, the algorithm and the issuer.
    """
    ((_, body),) = _values(certificate)
    _, to_be_signed = next(_values(body))
    fields = [each for each in _values(to_be_signed) if each[0] != _VERSION]
    _, (tag, written) = _values(fields[3][1])
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(written.decode("ascii"), form).replace(tzinfo=UTC)


def _values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tags and contents of the DER values in `data`."""
    at = 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size >= _LONG:
            count = size - _LONG
            size, at = int.from_bytes(data[at : at + count], "big"), at + count
        yield tag, data[at : at + size]
        at += size

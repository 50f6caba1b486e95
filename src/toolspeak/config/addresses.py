"""Checks and compares URLs of upstreams, and the address on which the gateway listens.

One strict pattern parses URLs and rejects anything unusual, so that no later parser can find another host in the same
text (SAFE-6): parsers disagree about backslashes, user names and escapes, which attackers use to redirect a key.
"""

import re
from ipaddress import IPv6Address, ip_address

from toolspeak.config.shape import Config
from toolspeak.errors import BadConfig

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]"
_URL = re.compile(rf"(https?)://({_HOST})(?::(\d{{1,5}}))?((?:/[A-Za-z0-9._~!$&'()*+,;=:%-]*+)*+)", re.IGNORECASE)
_LISTEN = re.compile(r"[A-Za-z0-9:._-]+")
_HOST_NAME = re.compile(_HOST)
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._\[\]:-]+")
_DATABASE = re.compile(r"(?:postgres(?:ql)?|sqlite)://[!-~]+")
_DATABASES = "postgresql://user@host/name or sqlite:////var/lib/toolspeak/runs.sqlite"
_REDIS = re.compile(r"(?:rediss?|unix)://[!-~]+")
_PROXY = re.compile(rf"https?://(?:[^\s/@?#]+@)?(?:{_HOST})(?::\d{{1,5}})?/?", re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}
_MOST_PORT = 65535
_LOCALHOST = "localhost"
"""The only name that counts as loopback: any other may resolve to another address."""


def url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of an upstream, or None. A URL that may contain a key is not shown."""
    if "@" in url:
        return "holds a user name or password; set `key` instead (the URL is not shown)"
    if "?" in url or "#" in url:
        return "has a query or fragment, which a base URL cannot have (the URL is not shown)"
    found = _URL.fullmatch(url)
    if found is None:
        return f"{url!r} is not a URL such as http://127.0.0.1:8080/v1 or https://api.example.com/v1"
    if found[2].startswith("[") and not _is_ipv6(found[2][1:-1]):
        return f"{url!r} has something in brackets that is no IPv6 address"
    if found[3] and not 0 < int(found[3]) <= _MOST_PORT:
        return f"{url!r} has a port that is not from 1 to {_MOST_PORT}"
    return None


def collector_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a collector of spans, or None."""
    if "@" in url:
        return "holds a user name or password; set OTEL_EXPORTER_OTLP_HEADERS instead (the URL is not shown)"
    return url_problem(url)


def jwks_url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of an identity provider's keys, or None.

    Keys over plain http could be replaced on the way, and with them every token be forged.
    """
    if "@" in url or "?" in url or "#" in url:
        return "holds a user name, a password, a query or a fragment, which it cannot have (the URL is not shown)"
    if problem := url_problem(url):
        return problem
    if url.lower().startswith("http:") and not is_near(url):
        return f"{url!r} is not https: keys that are replaced on the way would accept forged tokens"
    return None


def _is_ipv6(text: str) -> bool:
    try:
        return IPv6Address(text).scope_id is None
    except ValueError:
        return False


def database_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a database of runs, which is not shown: it may contain a password."""
    return None if _DATABASE.fullmatch(url) else f"is not a URL such as {_DATABASES} (it is not shown)"


def redis_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a Redis, which is not shown: it may contain a password."""
    return None if _REDIS.fullmatch(url) else "is not a URL such as redis://127.0.0.1:6379/0 (it is not shown)"


def proxy_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a proxy, which is not shown: it may contain a password."""
    if url.lower().startswith("socks"):
        return "is a SOCKS proxy, which is not supported: name an HTTP proxy (it is not shown)"
    if url == "none" or _PROXY.fullmatch(url):
        return None
    return "is not `none` or a URL such as http://proxy.example.com:3128 (it is not shown)"


def host_problem(host: str) -> str | None:
    """Return what is wrong with an address to listen on."""
    return None if _LISTEN.fullmatch(host) else f"{host!r} is not an address such as 127.0.0.1, ::1 or localhost"


def host_name_problem(host: str) -> str | None:
    """Return what is wrong with a host name by which clients may call the gateway."""
    return None if _HOST_NAME.fullmatch(host) else f"{host!r} is not a host such as tools.example.com, without a port"


def origin_problem(origin: str) -> str | None:
    """Return what is wrong with the origin of a web page."""
    return None if _ORIGIN.fullmatch(origin) else f"{origin!r} is not an origin such as https://chat.example.com"


def same_server(one: str, other: str) -> bool:
    """Return whether two URLs have the same scheme, host and port; `localhost` equals 127.0.0.1."""
    return _parts(one)[:3] == _parts(other)[:3]


def same_url(one: str, other: str) -> bool:
    """Return whether two URLs are equal, apart from case, default ports and a slash at the end."""
    return _parts(one) == _parts(other)


def plain_url(url: str) -> str:
    """Return the canonical form of a URL, under which profiles are stored."""
    scheme, host, port, path = _parts(url)
    return f"{scheme}://{host}:{port}{path}" if scheme else url


def upstream_name(url: str) -> str:
    """Return a name for an upstream that was given as a URL only: its host and port."""
    found = _URL.fullmatch(url)
    return f"{found[2]}:{found[3]}".lower() if found and found[3] else (found[2].lower() if found else url)


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only. A name other than `localhost` is not."""
    if host.lower() == _LOCALHOST:
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def reaches_this_machine_only(url: str) -> bool:
    """Return whether requests to a URL stay on this machine."""
    return is_loopback(_parts(url)[1])


def is_near(url: str) -> bool:
    """Return whether a URL is on this machine or its private network, where requests cost no money.

    A name without a dot, such as that of a container, counts as near.
    """
    host = _parts(url)[1].removeprefix("[").removesuffix("]")
    try:
        return ip_address(host).is_private
    except ValueError:
        return bool(host) and "." not in host


def check_public(config: Config) -> None:
    """Raise `BadConfig` if other machines can reach the address and no key is configured (SAFE-6)."""
    host = config.server.host
    if not config.needs_key and not is_loopback(host):
        raise BadConfig(
            f"server.host: {host!r} can be reached from other machines, and no key is required: "
            "set one (--key KEY, TOOLSPEAK_KEY, or [[keys]] in the file), or listen on 127.0.0.1"
        )


def _parts(url: str) -> tuple[str, str, str, str]:
    """Return scheme, host, port and path in canonical form; only the path if it is no URL that is accepted here."""
    found = _URL.fullmatch(url)
    if found is None:
        return ("", "", "", url)
    scheme, host = found[1].lower(), found[2].lower()
    host = "127.0.0.1" if host == _LOCALHOST else host
    return scheme, host, found[3] or _PORTS[scheme], found[4].rstrip("/")

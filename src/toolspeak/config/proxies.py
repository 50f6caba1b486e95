"""Resolves the proxy and the certificates of each upstream: its own settings, then `[network]`, then the environment.

    HTTPS_PROXY, HTTP_PROXY   for upstreams with an https and an http URL; the lower-case names win, as in curl
    NO_PROXY                  hosts without a proxy: `*`, `example.com` (with its subdomains), `10.0.0.0/8`, `host:8080`

Requests to this machine never use a proxy, whatever is set: a local model server must not become unreachable, or its
prompts visible, because a company's proxy is in the environment.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from toolspeak.config.addresses import proxy_problem, reaches_this_machine_only
from toolspeak.config.shape import Access, Upstream
from toolspeak.errors import BadConfig
from toolspeak.runtime.outbound import DIRECT, NO_OUTBOUND, Outbound


def with_outbound(upstream: Upstream, network: Outbound, environ: Mapping[str, str]) -> Upstream:
    """Return the upstream with everything resolved; resolving it again changes nothing. Raises `BadConfig`."""
    own, name = upstream.outbound, f"upstream {upstream.name!r}"
    others = tuple(_resolved(own, name, url, network, environ) for url in upstream.more_urls)
    # The first resolution counts: by the second, `outbound` holds what was resolved for the first URL.
    others = upstream.more_outbound or others
    return replace(upstream, outbound=_resolved(own, name, upstream.url, network, environ), more_outbound=others)


def with_jwks_outbound(access: Access, network: Outbound, environ: Mapping[str, str]) -> Access:
    """Return the settings with the proxy and the certificates of requests for the keys of tokens."""
    jwt = access.jwt
    if not jwt.jwks_url:
        return access
    return replace(access, jwt=replace(jwt, outbound=_resolved(NO_OUTBOUND, "network", jwt.jwks_url, network, environ)))


def _resolved(own: Outbound, name: str, url: str, network: Outbound, environ: Mapping[str, str]) -> Outbound:
    given = {each.name: getattr(own, each.name) or getattr(network, each.name) for each in fields(Outbound)}
    if own.client_cert:  # the key belongs to its certificate: another one's does not fit
        given["client_key"] = own.client_key
    given["proxy"] = given["proxy"] or _from_environment(url, environ)
    if given["proxy"] and reaches_this_machine_only(url):
        given["proxy"] = DIRECT
    outbound = Outbound(**given)
    try:
        _ = outbound.tls
    except OSError as error:  # ssl.SSLError is one
        raise BadConfig(
            f"{name}: its client_cert and client_key cannot be used together: {error.strerror or type(error).__name__}"
        ) from None
    return outbound


def _from_environment(url: str, environ: Mapping[str, str]) -> str:
    target = urlsplit(url)
    names = (f"{target.scheme}_proxy".lower(), f"{target.scheme}_proxy".upper())
    name = next((each for each in names if environ.get(each, "").strip()), "")
    if not name or reaches_this_machine_only(url) or _is_exempt(target.hostname or "", target.port, environ):
        return ""
    proxy = environ[name].strip()
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if problem := proxy_problem(proxy):
        raise BadConfig(f'{name}: {problem}; for no proxy set NO_PROXY, or proxy = "none" under [network]')
    return proxy


def _is_exempt(host: str, port: int | None, environ: Mapping[str, str]) -> bool:
    listed = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return any(_names(each.strip().lower(), host, port) for each in listed.split(",") if each.strip())


def _names(entry: str, host: str, port: int | None) -> bool:
    """Return whether an entry of NO_PROXY means this host."""
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:  # either is a name
        pass
    name, _, number = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    name = name.removeprefix("*").removeprefix(".")
    return (host == name or host.endswith(f".{name}")) and number in ("", str(port))

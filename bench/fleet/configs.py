"""Addresses and configuration files of the fleet: one for all gateways and workers of runs, one for nginx."""

import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.fleet.deaths import CARRIER
from bench.fleet.load import KEYS, RATE, STEADY

LEASE_S = 5.0
_RESERVED = 100
"""Open files that nginx keeps for anything but connections."""


@dataclass(frozen=True)
class Addresses:
    """Ports of loopback, and the URLs of the two databases. `back` is nginx in front of the upstreams."""

    entrance: int
    back: int
    steady: int
    upstreams: Mapping[str, int]
    gateways: Mapping[str, int]
    redis: str
    database: str


def gateway_config(addresses: Addresses, streams: int) -> str:
    """Write the configuration of all gateways and workers of runs."""
    urls = [_url(port) for port in addresses.upstreams.values()]
    keys = "".join(f'[[keys]]\ntenant = "{tenant}"\nkey = "{key}"\n' for tenant, key in KEYS.items())
    return f"""
[server]
keep_alive = 2.0
probe = "off"
shutdown = 60.0                          # longer than a stream lasts

[limits]                                 # all of the fleet shares one machine, so a late event loop says little
concurrent = {2000 + 2 * streams}
loop_delay_seconds = 2.0

[access]
store = "redis"

[redis]
url = "{addresses.redis}"

[runs]
enabled = true
tools = ["bench.fleet.run_tools:look", "bench.fleet.run_tools:put"]
imports = ["bench.fleet.run_tools:*"]
approval = "off"
live = 100000
lease = {LEASE_S}
database = "{addresses.database}"

{_upstream("pool", f"urls = {urls}")}
{_upstream("proxied", f'url = "{_url(addresses.back)}"')}
{_upstream(STEADY, f'url = "{_url(addresses.steady)}"')}
{_models("pool")}
{_models("proxied")}
[models.{STEADY}]
upstream = "{STEADY}"
model = "m"
support = "native"

{keys}requests_per_minute = {RATE}         # of the last of them
"""


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def _upstream(name: str, address: str) -> str:
    timeouts = "connect = 2.0\nfirst_byte = 6.0\nidle = 6.0\ntotal = 300.0\n"
    return f'[upstreams.{name}]\n{address}\nauth = "none"\n[upstreams.{name}.timeouts]\n{timeouts}'


def _models(upstream: str) -> str:
    """Offer the model of an upstream twice: with native calls, and with emulated ones."""
    native = f'[models.{upstream}-native]\nupstream = "{upstream}"\nmodel = "m"\nsupport = "native"\n'
    emulated = f'[models.{upstream}-emulated]\nupstream = "{upstream}"\nmodel = "m"\nsupport = "none"\n'
    return f'{native}{emulated}[models.{upstream}-emulated.tools]\ndialect = "hermes"\n'


def nginx_config(folder: Path, addresses: Addresses) -> str:
    """Write the configuration of the load balancer, with what docs/tls.md recommends for streams."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    kept = "\n    ".join(f"{kind}_temp_path {folder}/nginx-{kind};" for kind in kinds)
    return f"""
daemon off;
{"user root;" if os.geteuid() == 0 else ""}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log warn;
events {{ worker_connections {resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _RESERVED}; }}
http {{
    access_log off;
    {kept}
    client_max_body_size 32m;
    {_balanced("gateways", list(addresses.gateways.values()), addresses.entrance)}
    {_balanced("upstreams", list(addresses.upstreams.values()), addresses.back)}
}}
"""


def _balanced(name: str, servers: Sequence[int], port: int) -> str:
    lines = " ".join(f"server 127.0.0.1:{server} max_fails=2 fail_timeout=2s;" for server in servers)
    return f"""
    upstream {name} {{ least_conn; {lines} keepalive 64; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://{name};
            proxy_http_version 1.1;
            proxy_set_header Host 127.0.0.1;
            add_header {CARRIER} $upstream_addr always;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_connect_timeout 2s;
            proxy_read_timeout 30m;
        }}
    }}"""

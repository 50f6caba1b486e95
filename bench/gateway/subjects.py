"""The gateways that are measured, and how each is started: toolspeak, the peers, Envoy, nginx, and a bare one."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bench.gateway.answers import MODELS
from bench.gateway.asks import small, with_one_tool
from bench.gateway.install import folder

GATEWAY_CORE, LOAD_CORE = 0, 1
START_LIMIT_S = 90.0
BASE = {"openai_chat": "/v1", "openai_responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta", "ollama": ""}
"""What an upstream's address ends in, by wire."""
LITELLM_ENV = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "LITELLM_MODE": "PRODUCTION",
    # it refuses to start without a master key otherwise; this is loopback only
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
PATIENT = """
[limits]
loop_delay_seconds = 10.0      # 96 streams that begin at once on a busy machine shall be late, not refused
"""
Command = Callable[[int, int, Path], list[str]]
"""Makes the command from the port, the upstream's port and a folder for files."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A gateway that is measured."""

    name: str
    command: Command
    headers: Callable[[int], dict[str, str]] = lambda _: {}
    env: dict[str, str] = field(default_factory=dict[str, str])
    lost_threads: bool = False
    """Its threads come and go: see `meter.cpu_s`."""
    slow: int = 1
    """It gets this many times fewer requests, so that a round stays short."""
    model: str = "small-0"
    """The model of the requests that wait for its first answer."""
    is_pinned: bool = True
    """It runs on the core of gateways; else on all of them."""


def upstream(port: int, _upstream: int, _files: Path) -> list[str]:
    return [sys.executable, "-m", "bench.gateway.upstream", str(port)]


def bare(port: int, upstream: int, _files: Path) -> list[str]:
    return [sys.executable, "-m", "bench.gateway.bare", str(port), f"http://127.0.0.1:{upstream}"]


def toolspeak(*options: str, wire: str = "openai_chat") -> Command:
    """Return the command of toolspeak, with these options."""

    def made(port: int, upstream: int, files: Path) -> list[str]:
        config = files / "toolspeak.toml"
        config.write_text(PATIENT)
        program = [sys.executable, "-m", "toolspeak", "serve", "--quiet", "--probe", "off", "--config", str(config)]
        address = f"http://127.0.0.1:{upstream}{BASE[wire]}"
        return [*program, "--upstream", address, "--wire", wire, "--port", str(port), *options]

    return made


def toolspeak_serve(config: Path, *options: str) -> Command:
    """Return the command of toolspeak with this configuration and these options."""
    return lambda port, _upstream, _files: [
        *(sys.executable, "-m", "toolspeak", "serve", "--quiet", "--config", str(config), "--port", str(port)),
        *options,
    ]


def litellm(port: int, upstream: int, files: Path) -> list[str]:
    place = {"api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-none"}
    models = [{"model_name": name, "litellm_params": {"model": f"openai/{name}", **place}} for name in MODELS]
    config = {
        "model_list": models,
        "litellm_settings": {"set_verbose": False, "telemetry": False, "request_timeout": 60, "num_retries": 0},
        "general_settings": {"disable_spend_logs": True},
        "router_settings": {"num_retries": 0},
    }
    (files / "litellm.yaml").write_text(json.dumps(config))  # JSON is YAML
    program = folder("litellm") / "venv" / "bin" / "litellm"
    address = ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    return [str(program), "--config", str(files / "litellm.yaml"), *address]


def forge(*options: str) -> Command:
    """Return the command of forge, with these options."""

    def made(port: int, upstream: int, _files: Path) -> list[str]:
        program = [str(folder("forge") / "venv" / "bin" / "python"), "-m", "forge.proxy"]
        return [
            *program,
            "--backend-url",
            f"http://127.0.0.1:{upstream}",
            "--port",
            str(port),
            "--no-serialize",
            *options,
        ]

    return made


def portkey(port: int, _upstream: int, _files: Path) -> list[str]:
    program = folder("portkey") / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    return ["node", str(program), f"--port={port}", "--headless"]


def portkey_headers(upstream: int) -> dict[str, str]:
    host = f"http://127.0.0.1:{upstream}/v1"
    return {"authorization": "Bearer sk-none", "x-portkey-provider": "openai", "x-portkey-custom-host": host}


_ENVOY_TYPE = "type.googleapis.com/envoy.extensions.filters"


def envoy(port: int, upstream: int, files: Path) -> list[str]:
    """Return the command of Envoy with one worker thread."""
    route = {"cluster": "upstream", "timeout": "0s"}
    manager = {
        "@type": f"{_ENVOY_TYPE}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]}]
        },
        "http_filters": [
            {
                "name": "router",
                "typed_config": {"@type": f"{_ENVOY_TYPE}.http.router.v3.Router"},
            }
        ],
    }
    listener = {
        "address": _envoy_address(port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    endpoint = {"endpoint": {"address": _envoy_address(upstream)}}
    cluster = {
        "name": "upstream",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "upstream", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    config = {"static_resources": {"listeners": [listener], "clusters": [cluster]}}
    (files / "envoy.yaml").write_text(json.dumps(config))  # JSON is YAML
    (program,) = (folder("envoy") / "venv").glob("lib/python*/site-packages/envoy/_bin/envoy")
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
    return [str(program), "--config-path", str(files / "envoy.yaml"), *options]


def _envoy_address(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def nginx(port: int, upstream: int, files: Path) -> list[str]:
    """Return the command of nginx as one process that passes each chunk on as it comes."""
    temporary = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = " ".join(f"{name}_temp_path {files}/nginx-{name};" for name in temporary)
    (files / "nginx.conf").write_text(f"""
        daemon off; master_process off; pid {files}/nginx.pid; error_log stderr error;
        events {{ worker_connections 4096; }}
        http {{
            access_log off; {paths}
            upstream model {{ server 127.0.0.1:{upstream}; keepalive 128; }}
            server {{
                listen 127.0.0.1:{port}; keepalive_requests 1000000; client_body_buffer_size 1m;
                location / {{
                    proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection "";
                    proxy_buffering off; proxy_read_timeout 60s;
                }}
            }}
        }}
    """)
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return [program, "-c", str(files / "nginx.conf"), "-e", "stderr"]


PROMPT = ("--backend", "llamaserver", "--backend-capability", "prompt", "--model", "forge-0")
SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("direct", upstream),
        Subject("bare", bare),
        Subject("native", toolspeak()),
        Subject("emulated", toolspeak("--mode", "force", "--dialect", "fenced")),
        Subject("push", toolspeak("--driver", "push")),
        Subject("push-emulated", toolspeak("--driver", "push", "--mode", "force", "--dialect", "fenced")),
        Subject("envoy", envoy),
        Subject("nginx", nginx),
        Subject("litellm", litellm, env=LITELLM_ENV, lost_threads=True, slow=10),
        Subject("forge", forge("--backend", "openai"), slow=4),
        Subject("forge-prompt", forge(*PROMPT), slow=4, model="forge-0"),
        Subject("portkey", portkey, portkey_headers, slow=2),
    )
}


def of_wire(wire: str) -> Subject:
    """Return toolspeak over an upstream of this wire."""
    return Subject(f"over {wire}", toolspeak(wire=wire))


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pinned(core: int) -> list[str]:
    """Return the prefix that pins a command to a core, where there are two cores and a tool for it."""
    return ["taskset", "-c", str(core)] if shutil.which("taskset") and (os.cpu_count() or 1) > 1 else []


class Running:
    """A subject that runs, until the `with` ends."""

    def __init__(self, subject: Subject, files: Path, upstream_port: int = 0) -> None:
        self.subject, self._files, self.upstream_port = subject, files, upstream_port
        self.port = free_port()
        self.headers = subject.headers(upstream_port)
        self.start_s = 0.0

    def __enter__(self) -> Self:
        core = LOAD_CORE if self.subject.name == "direct" else GATEWAY_CORE
        pin = pinned(core) if self.subject.is_pinned else []
        command = [*pin, *self.subject.command(self.port, self.upstream_port, self._files)]
        env = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "PYTHONPATH") if name in os.environ}
        self._log = (self._files / f"{self.subject.name.replace(' ', '-')}.log").open("wb")
        began = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=env | self.subject.env, stdout=self._log, stderr=subprocess.STDOUT, process_group=0
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        self.start_s = time.perf_counter() - began
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def said(self) -> str:
        """Return what it has printed so far."""
        return Path(self._log.name).read_text(errors="replace")

    def _wait(self) -> None:
        """Send requests until an answer comes."""
        end = time.perf_counter() + START_LIMIT_S
        while not self._answers():
            if self._process.poll() is not None or time.perf_counter() > end:
                sys.exit(f"{self.subject.name} did not start: {self._process.args!r}\n{self.said()[-3000:]}")
            time.sleep(0.003)

    def _answers(self) -> bool:
        try:
            return self._asked(small(self.subject.model)).status == 200
        except OSError:
            return False

    def plan(self) -> str:
        """Return the plan that toolspeak reports for a request with a tool."""
        return self._asked(with_one_tool("brief-0")).headers.get("x-toolspeak-plan", "")

    def _asked(self, body: bytes) -> http.client.HTTPResponse:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            head = {"content-type": "application/json", **self.headers}
            connection.request("POST", "/v1/chat/completions", body, head)
            answer = connection.getresponse()
            answer.read()
            return answer


@contextlib.contextmanager
def running(subjects: list[Subject], files: Path) -> Generator[dict[str, Running]]:
    """Run the upstream and all of these at once."""
    with contextlib.ExitStack() as stack:
        direct = stack.enter_context(Running(SUBJECTS["direct"], files))
        started = {"direct": direct}
        for subject in subjects:
            if subject.name != "direct":
                started[subject.name] = stack.enter_context(Running(subject, files, direct.port))
        yield started

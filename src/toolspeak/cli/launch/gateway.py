"""Gives an agent its gateway: one that runs already, or one of its own while the agent runs; and the model to use."""

import http.client
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import click
import msgspec
from typing_extensions import override

from toolspeak.cli.launch.agents import CONTEXT, NO_KEY
from toolspeak.config import Config, Options
from toolspeak.config.environment import options_in, state_folder
from toolspeak.config.file import load
from toolspeak.config.local import with_local
from toolspeak.config.overlay import doubts
from toolspeak.config.server_tls import NO_SERVER_TLS
from toolspeak.config.shape import HOST, Key, digest_of
from toolspeak.errors import BadConfig
from toolspeak.runtime.clock import CLOCK

UP: Final = "toolspeak up MODEL.gguf"
LOG: Final = "launch.log"
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
_LARGEST_LOG: Final = 1 << 20
"""Bytes after which the log begins anew."""
_GREETING: Final = b"toolspeak is running"
_SIGHT_S: Final = 2.0
"""A gateway on this machine answers `/` in milliseconds, and another program on its port must not delay the start."""
_ANSWER_S: Final = 30.0
_SHUTDOWN_S: Final = 1.0
"""For requests that the agent has left open; it has ended by then."""
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104 # only compared, never bound
_UNAUTHORIZED: Final = (401, 403)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that answers, and the key that it wants."""

    url: str
    key: str = NO_KEY
    is_ours: bool = False
    """It ends with the agent."""


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """What the command line says about the gateway."""

    url: str | None
    file: Path | None
    options: Options

    @property
    def wants_own(self) -> bool:
        """Whether an option says how the gateway works, which one that runs already would ignore."""
        return self.file is not None or replace(self.options, key=None) != Options()


def find_gateway(choice: GatewayChoice, environ: Mapping[str, str]) -> RunningGateway | None:
    """Return the gateway of `--gateway`, or one that runs at the configured address; None if there is none.

    Raises `BadConfig` if `--gateway` names an address where no toolspeak answers.
    """
    key = choice.options.key or options_in(environ).key or NO_KEY
    if choice.url is not None:
        url = choice.url.rstrip("/").removesuffix("/v1")
        _check_url(url)
        if not _is_toolspeak(url):
            raise BadConfig(
                f"no toolspeak gateway answers at {url}. Start one there with `toolspeak serve`, "
                "or leave --gateway out: then one is started with the agent"
            )
        return RunningGateway(url, key)
    if choice.wants_own:
        return None
    server = load(choice.file, environ, choice.options).server
    host = HOST if server.host in _ANY else server.host
    scheme = "https" if server.tls.is_on else "http"
    url = f"{scheme}://[{host}]:{server.port}" if ":" in host else f"{scheme}://{host}:{server.port}"
    return RunningGateway(url, key) if server.port and _is_toolspeak(url) else None


@contextmanager
def own_gateway(choice: GatewayChoice, environ: Mapping[str, str]) -> Generator[RunningGateway]:
    """Run a gateway in this process, on a free port of loopback and with a key that only the agent gets.

    Raises `BadConfig` if there is no model server.
    """
    from toolspeak.gateway.server import background_server, build  # noqa: PLC0415 # takes long to load

    key = CLOCK.fresh_id() + CLOCK.fresh_id()
    config = _for_one_agent(_load(choice, environ), key)
    for doubt in doubts(config):
        click.echo(f"toolspeak: warning: {doubt}", err=True)
    with _log(state_folder(environ)), background_server(build(config), config) as url:
        yield RunningGateway(url, key, is_ours=True)


def _load(choice: GatewayChoice, environ: Mapping[str, str]) -> Config:
    config = load(choice.file, environ, choice.options)
    if not config.upstreams:
        try:
            config = with_local(config, choice.options, environ)
        except BadConfig:
            raise BadConfig(
                "no model server is named, and none runs on this machine. "
                f"Run a model with `{UP}`, start Ollama, llama.cpp, LM Studio, vLLM or SGLang, "
                "or name a server with --upstream URL or --preset NAME"
            ) from None
    return config


def _for_one_agent(config: Config, key: str) -> Config:
    """Return the configuration of a gateway for one agent: loopback only, its own key, no runs."""
    # The certificate is for the public name of a gateway: on loopback, the agent would refuse it.
    server = replace(config.server, host=HOST, port=0, shutdown=_SHUTDOWN_S, tls=NO_SERVER_TLS)
    return replace(
        config, server=server, keys=(Key("launch", digest_of(key)),), offer=replace(config.offer, enabled=False)
    )


@contextmanager
def _log(folder: Path | None) -> Generator[None]:
    """Send the gateway's log to a file: the terminal belongs to the agent. Afterwards, say if there is a warning."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOG
    is_large = path.exists() and path.stat().st_size > _LARGEST_LOG
    handler = _CountingHandler(path, mode="w" if is_large else "a", encoding="utf-8")
    handler.setFormatter(logging.Formatter(_LOG_FORMAT))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()
        if handler.warnings:
            click.echo(f"toolspeak: the gateway logged {handler.warnings} warnings or errors, see {path}", err=True)


class _CountingHandler(logging.FileHandler):
    warnings = 0

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Count what a user should look at."""
        self.warnings += record.levelno >= logging.WARNING
        super().emit(record)


# ---------------------------------------------------------------- the model


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed]


class _Shown(msgspec.Struct):
    model_info: dict[str, object] = {}


def choose_model(gateway: RunningGateway, wanted: str | None, agent: str) -> str:
    """Return the model of the command line, else the first that the gateway lists. Raises `BadConfig`."""
    names = _model_names(gateway)
    if wanted is None and not names:
        raise BadConfig(
            f"the gateway at {gateway.url} lists no models: its model server does not answer, or lists none. "
            f"Start the model server (`{UP}` runs one), or name the model: `toolspeak launch {agent} MODEL`"
        )
    if wanted is not None and names and wanted not in names:
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")  # noqa: PLR2004
        raise BadConfig(
            f"there is no model {wanted!r} here; there is {shown}. "
            f"Type `toolspeak launch {agent} {names[0]}`, or `{UP}` to run another one"
        )
    return wanted or names[0]


def context_of(gateway: RunningGateway, model: str) -> int:
    """Return the context size that the gateway knows of a model; a large one if it knows none."""
    status, body = _request(gateway.url, "/api/show", gateway.key, msgspec.json.encode({"model": model}))
    if status != http.client.OK:
        return CONTEXT
    info = msgspec.json.decode(body, type=_Shown).model_info
    sizes = [value for name, value in info.items() if name.endswith(".context_length") and isinstance(value, int)]
    return sizes[0] if sizes else CONTEXT


def _model_names(gateway: RunningGateway) -> list[str]:
    status, body = _request(gateway.url, "/v1/models", gateway.key)
    if status in _UNAUTHORIZED:
        raise BadConfig(
            f"the gateway at {gateway.url} requires a key. Set TOOLSPEAK_KEY to it, or pass --key KEY"
            if gateway.key == NO_KEY
            else f"the gateway at {gateway.url} refuses this key. Set TOOLSPEAK_KEY to another, or pass --key KEY"
        )
    if status != http.client.OK:
        return []
    try:
        return [each.id for each in msgspec.json.decode(body, type=_Listing).data]
    except msgspec.MsgspecError:
        return []


# ---------------------------------------------------------------- HTTP


def _is_toolspeak(url: str) -> bool:
    try:
        _, body = _request(url, "/", NO_KEY, timeout=_SIGHT_S)
    except BadConfig:
        return False
    return body.startswith(_GREETING)


def _request(url: str, path: str, key: str, body: bytes | None = None, timeout: float = _ANSWER_S) -> tuple[int, bytes]:
    """Send one request, without any proxy. Raises `BadConfig` if no answer comes."""
    split = urlsplit(url)
    connection = _connect(split, timeout)
    try:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request("POST" if body else "GET", split.path + path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise BadConfig(f"the gateway at {url} does not answer: {error}. Start it again, then launch again") from None
    finally:
        connection.close()


def _connect(split: SplitResult, timeout: float) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
    return kind(split.hostname or "", split.port, timeout=timeout)


def _check_url(url: str) -> None:
    split = urlsplit(url)
    try:
        is_port = split.port is None or split.port > 0
    except ValueError:
        is_port = False
    if split.scheme not in {"http", "https"} or not split.hostname or not is_port:
        raise BadConfig(f"--gateway: {url!r} is not a URL. Write it as http://127.0.0.1:4141")

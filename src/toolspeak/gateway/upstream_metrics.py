"""Shows the metrics of model servers to those who choose between gateways (OPS-4).

    GET /upstreams/box/metrics      ->   GET <the server's root>/metrics, the same bytes
    GET /upstreams/box/2/metrics    ->   the second of its `urls`

An endpoint picker of the Gateway API inference extension looks at the queue and the cache of the vLLM behind each pod,
and finds a gateway there. Only the text formats of Prometheus are passed on: a page of HTML would be one of the
dashboard's own origin.
"""

import re
from typing import Final

from toolspeak.config.shape import Config
from toolspeak.gateway.exchange import Exchange, Refused, ResponseContext, TurnFailed, answer, header
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.replica_client import ServerPage
from toolspeak.runtime.transport import TransportError
from toolspeak.text.display import visible

_PATH: Final = re.compile(r"([^/]{1,100})(?:/([0-9]{1,4}))?/metrics")
_METRICS: Final = "/metrics"
_MOST: Final = 8 << 20
"""Bytes of a page: some thousand series."""
_TYPES: Final = ("text/plain", "application/openmetrics-text")
_NO_ENDPOINT: Final = (404, 405, 501)
"""llama.cpp answers 501 if it was started without `--metrics`."""
_UNSNIFFED: Final = (b"x-content-type-options", b"nosniff")


async def answer_metrics(
    exchange: Exchange, response: ResponseContext, path: str, config: Config, directory: Directory
) -> None:
    """Answer with the metrics of a model server; `path` is the rest after `/upstreams/`. Raises `Refused`."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise _unknown("unknown path: the metrics of a model server are at /upstreams/NAME/metrics")
    name = found[1]
    is_shown = any(each.name == name and each.expose_metrics for each in config.upstreams)
    upstream = directory.upstream(name) if is_shown else None
    if upstream is None:
        name = visible(name)
        raise _unknown(f"no upstream {name!r} shows its metrics: set expose_metrics = true under [upstreams.{name}]")
    number = _number(name, found[2], len(upstream.pool.replicas))
    response.entry.upstream = name
    accept = header(exchange, b"accept")
    try:
        page = await upstream.get_of(number, _METRICS, (("accept", accept),) if accept else (), _MOST)
    except TransportError as error:
        raise _explained(name, error.failure) from None
    media_type = _media_type(name, page)
    await answer(exchange, 200, media_type, page.body, (_UNSNIFFED, *response.headers))


def _number(name: str, written: str | None, count: int) -> int:
    """Return which server is meant, the first being 0."""
    if written is None and count > 1:
        raise _unknown(f"the upstream {name!r} has {count} servers: name one, as /upstreams/{name}/1/metrics")
    number = int(written or 1)
    if not 1 <= number <= count:
        raise _unknown(f"the upstream {name!r} has no server {number}: its servers are 1 to {count}")
    return number - 1


def _media_type(name: str, page: ServerPage) -> bytes:
    if page.content_type.partition(";")[0].strip().lower() not in _TYPES:
        message = f"the upstream {name!r} answers {_METRICS} with no metrics: is its URL right?"
        raise TurnFailed(Failure(FailureKind.OTHER, message, 502))
    return page.content_type.encode("latin-1", "replace")


def _explained(name: str, failure: Failure) -> Refused:
    if failure.status not in _NO_ENDPOINT:
        return TurnFailed(failure)
    message = (
        f"the upstream {name!r} has no {_METRICS} (it answers {failure.status}): start its server with "
        "metrics, llama.cpp with --metrics, SGLang with --enable-metrics"
    )
    return TurnFailed(Failure(FailureKind.NOT_FOUND, message, 404))


def _unknown(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))

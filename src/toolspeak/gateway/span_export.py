"""Sends spans to a collector over OTLP/HTTP, with the SDK of the extra `otel`.

Spans wait in a bounded queue, and a thread of the SDK sends them in batches: a turn never waits for the collector. If
the collector does not answer, its spans are dropped, and the log has one line; one more when it is back.
"""

import logging
from collections.abc import Callable, Sequence
from importlib.metadata import version
from threading import Thread
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from typing_extensions import override

_LOG: Final = logging.getLogger(__name__)
_PATH: Final = "/v1/traces"
_TIMEOUT: Final = 5.0
"""Seconds in which a batch is sent, with its retries, or dropped."""
_LAST_WORDS: Final = 3.0
"""Seconds that the last spans get at shutdown."""


def open_provider(endpoint: str) -> tuple[TracerProvider, Callable[[], None]]:
    """Return a provider whose spans go to the collector, and a function that sends the last ones and ends it."""
    url = endpoint.rstrip("/")
    url = url if url.endswith(_PATH) else url + _PATH
    # It logs each retry and each lost batch; `_OutageLog` says it once.
    logging.getLogger(OTLPSpanExporter.__module__).setLevel(logging.CRITICAL)
    own = Resource({"service.name": "toolspeak", "service.version": version("toolspeak")})
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of the operator win.
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_OutageLog(OTLPSpanExporter(url, timeout=_TIMEOUT), url)))

    def close() -> None:
        # In a thread that nothing waits for: with a full queue and an absent collector the SDK takes half a minute.
        ending = Thread(target=provider.shutdown, daemon=True, name="otel-shutdown")
        ending.start()
        ending.join(_LAST_WORDS)

    return provider, close


class _OutageLog(SpanExporter):
    """Passes spans on to an exporter, and logs when the collector goes away and when it is back."""

    def __init__(self, exporter: SpanExporter, url: str) -> None:
        self._exporter: Final = exporter
        self._url: Final = url
        self._is_out = False

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except OSError:  # older exporters raise what `requests` does
            result = SpanExportResult.FAILURE
        is_out = result is not SpanExportResult.SUCCESS
        if is_out and not self._is_out:
            _LOG.warning(
                "the collector at %s takes no spans, so they are dropped. Start it, or change endpoint under [otel].",
                self._url,
            )
        elif self._is_out and not is_out:
            _LOG.warning("the collector at %s takes spans again", self._url)
        self._is_out = is_out
        return result

    @override
    def shutdown(self) -> None:
        self._exporter.shutdown()

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

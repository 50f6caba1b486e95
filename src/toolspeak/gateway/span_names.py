"""The attributes of spans: every name, in one table (OBS-15).

OpenTelemetry's conventions for generative AI are still in development, and their names move from package to package. So
the names are written here, as they were in November 2026, and not imported. docs/metrics.md has a table of them.

    turn {model}      SERVER    the client's request, from its head to the end of the response
      chat {model}    CLIENT    a request to the upstream, with its answer; hidden ones too
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

TURN, CHAT = "turn", "chat"
"""The spans; their names have the model after it."""
AttributeValue: TypeAlias = str | int | float | bool | Sequence[str]


@dataclass(frozen=True, eq=False, slots=True)
class SpanAttribute:
    """One attribute of the spans that `spans` names."""

    name: str
    spans: tuple[str, ...]
    help: str
    old: str = ""
    """The name before it was renamed, which `otel.old_names` adds."""


_BOTH: Final = (TURN, CHAT)
OPERATION: Final = SpanAttribute("gen_ai.operation.name", (CHAT,), "`chat`")
PROVIDER: Final = SpanAttribute(
    "gen_ai.provider.name",
    (CHAT,),
    "the provider that serves the model: that of the preset, else of the wire",
    "gen_ai.system",
)
REQUEST_MODEL: Final = SpanAttribute(
    "gen_ai.request.model",
    _BOTH,
    "the model as the client named it; in `chat`, as toolspeak requested it from the upstream",
)
RESPONSE_MODEL: Final = SpanAttribute(
    "gen_ai.response.model", (TURN,), "the upstream's name for the model that answered"
)
STREAM: Final = SpanAttribute("gen_ai.request.stream", _BOTH, "whether the response is streamed")
FINISH_REASONS: Final = SpanAttribute(
    "gen_ai.response.finish_reasons", _BOTH, "why generation ended: `end`, `calls`, `length`, `filter`, `error`"
)
FIRST_CHUNK: Final = SpanAttribute(
    "gen_ai.response.time_to_first_chunk", _BOTH, "seconds to the first event of the answer, or of the response"
)
INPUT_TOKENS: Final = SpanAttribute(
    "gen_ai.usage.input_tokens", (CHAT,), "tokens, including cached ones", "gen_ai.usage.prompt_tokens"
)
OUTPUT_TOKENS: Final = SpanAttribute(
    "gen_ai.usage.output_tokens", (CHAT,), "tokens, including reasoning", "gen_ai.usage.completion_tokens"
)
CACHE_READ: Final = SpanAttribute("gen_ai.usage.cache_read.input_tokens", (CHAT,), "tokens, if any")
CACHE_WRITE: Final = SpanAttribute("gen_ai.usage.cache_creation.input_tokens", (CHAT,), "tokens, if any")
REASONING: Final = SpanAttribute("gen_ai.usage.reasoning.output_tokens", (CHAT,), "tokens, if any")
INPUT: Final = SpanAttribute(
    "gen_ai.input.messages", (TURN,), "with `content`: the newest messages, as JSON", "gen_ai.prompt"
)
OUTPUT: Final = SpanAttribute(
    "gen_ai.output.messages", _BOTH, "with `content`: the answer, as JSON; in `chat`, as the model wrote it",
    "gen_ai.completion",
)  # fmt: skip
ERROR: Final = SpanAttribute("error.type", _BOTH, "the kind of the failure, or its cause (`fault` in the metrics)")
METHOD: Final = SpanAttribute("http.request.method", (TURN,), "the method of the client's request")
PATH: Final = SpanAttribute("url.path", (TURN,), "the path of the client's request, without the query")
STATUS: Final = SpanAttribute("http.response.status_code", (TURN,), "the status of the response")
ADDRESS: Final = SpanAttribute("server.address", (CHAT,), "the host of the upstream")
PORT: Final = SpanAttribute("server.port", (CHAT,), "the port of the upstream")
TRACE: Final = SpanAttribute("toolspeak.trace", (TURN,), "the id of the [trace](traces.md)")
WIRE: Final = SpanAttribute("toolspeak.wire", (TURN,), "the protocol of the client")
PLAN: Final = SpanAttribute("toolspeak.plan", (TURN,), "the plan as it was carried out, in one line")
UPSTREAM: Final = SpanAttribute("toolspeak.upstream", (CHAT,), "the upstream's name in the configuration")
TACTIC: Final = SpanAttribute("toolspeak.tactic", (CHAT,), "the [tactic](turns.md) that sent the request")
REQUESTS: Final = SpanAttribute("toolspeak.requests", (TURN,), "requests to the upstream, including hidden ones")
MODE: Final = SpanAttribute(
    "toolspeak.tool_call.mode", (TURN,), "`native`, `rescued`, `emulated`, `plain` or `off`, as in the metrics"
)
DIALECT: Final = SpanAttribute(
    "toolspeak.tool_call.dialect",
    (TURN,),
    "the dialect in which the model wrote emulated calls, else the one it was taught",
)
CALLS: Final = SpanAttribute("toolspeak.tool_call.count", (TURN,), "calls delivered to the client")
REPAIR: Final = SpanAttribute(
    "toolspeak.tool_call.repair",
    (TURN,),
    "`none`; `repaired`: a call was repaired; `partial`: an attempted call could not be delivered",
)
COMPLAINTS: Final = SpanAttribute(
    "toolspeak.tool_call.complaints", (TURN,), "why attempted calls were not delivered, such as `schema_error`"
)
RETRY_REASON: Final = SpanAttribute(
    "toolspeak.tool_call.retry_reason", (CHAT,), "why the turn sent another request; the first request has none"
)

SPAN_ATTRIBUTES: Final = (
    OPERATION,
    PROVIDER,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    STREAM,
    FINISH_REASONS,
    FIRST_CHUNK,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    CACHE_READ,
    CACHE_WRITE,
    REASONING,
    INPUT,
    OUTPUT,
    ERROR,
    METHOD,
    PATH,
    STATUS,
    ADDRESS,
    PORT,
    TRACE,
    WIRE,
    PLAN,
    UPSTREAM,
    TACTIC,
    REQUESTS,
    MODE,
    DIALECT,
    CALLS,
    REPAIR,
    COMPLAINTS,
    RETRY_REASON,
)
"""All of them, in the order of the page."""


def named(values: Mapping[SpanAttribute, AttributeValue | None], *, old_names: bool) -> dict[str, AttributeValue]:
    """Return the attributes by name, and with `old_names` by their old names too. Those that are None are left out."""
    given = {attribute: _plain(value) for attribute, value in values.items() if value is not None}
    current = {attribute.name: value for attribute, value in given.items()}
    old = {attribute.old: value for attribute, value in given.items() if attribute.old} if old_names else {}
    return current | old


def _plain(value: AttributeValue) -> AttributeValue:
    """Return a value without enumerations: older SDKs (1.30) drop a member of one, though it is a string."""
    if isinstance(value, str):
        return str(value)
    return [str(one) for one in value] if isinstance(value, Sequence) else value

"""Failures: why an upstream returned no answer, or broke one off."""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """The classes of upstream errors (WIRE-5); `engine/tactics.py` says what a turn does about each.

    The wires read the class from the error's text, since status codes differ between servers for the same error. The
    text must be matched exactly: "does not support this tool_choice" does not mean that there are no tools.
    """

    TOOLS_UNSUPPORTED = "tools_unsupported"
    TOOL_CHOICE_UNSUPPORTED = "tool_choice_unsupported"
    STREAMING_TOOLS_UNSUPPORTED = "streaming_tools_unsupported"
    NATIVE_PARSER_FAILED = "native_parser_failed"
    """The server could not parse its model's call; `salvage` is the model's text if the error quotes it."""
    MODEL_SCHEMA_ERROR = "model_schema_error"
    """The server rejected the arguments that its model wrote."""
    TOO_MANY_TOOLS = "too_many_tools"
    TOOL_NAME_INVALID = "tool_name_invalid"
    TOOL_CALL_ID_FORMAT = "tool_call_id_format"
    """The ids of calls have the wrong form, as for Mistral, which wants nine letters and digits."""
    HISTORY_PAIRING = "history_pairing"
    """A call has no result, or a result has no call."""
    HISTORY_NEEDS_TOOLS = "history_needs_tools"
    """The history has calls, so the request must have tools, as for Bedrock."""
    HISTORY_NEEDS_SIGNATURE = "history_needs_signature"
    """A call lacks the signature that came with it, as for Gemini 3 (`thought_signature`)."""
    ROLE_ORDER = "role_order"
    CONTENT_SHAPE = "content_shape"
    CONTEXT_LENGTH = "context_length"
    INVALID_REQUEST = "invalid_request"
    AUTH = "auth"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    """The server is overloaded or broken for the moment; a retry can help."""
    TIMEOUT = "timeout"
    DISCONNECTED = "upstream_disconnect"
    OTHER = "other"

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later. Such an error says nothing about the model or the request."""
        return self in _TEMPORARY

    @property
    def denies_access(self) -> bool:
        """Whether the upstream rejects the key, or the key's permissions."""
        return self in (FailureKind.AUTH, FailureKind.PERMISSION)


_TEMPORARY = frozenset((FailureKind.TRANSIENT, FailureKind.RATE_LIMITED, FailureKind.TIMEOUT, FailureKind.DISCONNECTED))


@dataclass(frozen=True, slots=True)
class Failure:
    """An upstream's error. `status` is its HTTP status (0 if none came), `field` the request's field that it names.

    `salvage` is the model's own text if the error quotes it; `retry_after` is in seconds.
    """

    kind: FailureKind
    message: str
    status: int = 0
    field: str = ""
    salvage: str = ""
    retry_after: float | None = None
    code: str = ""
    """The word that clients of this protocol know the error by, where it has one of its own."""
    echoed: bool = False
    """Whether `kind` was read from words of the request itself. One client could have written this error, so it must
    not change facts that other clients share."""
    basis: tuple[int, str] = dataclasses.field(default=(0, ""), repr=False, compare=False)
    """The status and the normalised text from which `kind` was read, for a second classification without echoes."""

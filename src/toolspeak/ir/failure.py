"""Why an upstream gave no answer, or broke one off."""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """The classes of WIRE-5. What can be done about each is the engine's to say."""

    TOOLS_UNSUPPORTED = "tools_unsupported"
    TOOL_CHOICE_UNSUPPORTED = "tool_choice_unsupported"
    STREAMING_TOOLS_UNSUPPORTED = "streaming_tools_unsupported"
    NATIVE_PARSER_FAILED = "native_parser_failed"
    """The server could not read the call that its model wrote; `salvage` has the model's text where it was told."""
    MODEL_SCHEMA_ERROR = "model_schema_error"
    """The server refused the arguments that its model wrote."""
    TOO_MANY_TOOLS = "too_many_tools"
    TOOL_NAME_INVALID = "tool_name_invalid"
    TOOL_CALL_ID_FORMAT = "tool_call_id_format"
    HISTORY_PAIRING = "history_pairing"
    HISTORY_NEEDS_TOOLS = "history_needs_tools"
    HISTORY_NEEDS_SIGNATURE = "history_needs_signature"
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
    """Overloaded, or broken for the moment: trying again can help."""
    TIMEOUT = "timeout"
    DISCONNECTED = "upstream_disconnect"
    OTHER = "other"

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: it says nothing about the model or the form of the request."""
        return self in _TEMPORARY

    @property
    def denies_access(self) -> bool:
        """Whether the upstream does not accept the key, or what the key may do."""
        return self in (FailureKind.AUTH, FailureKind.PERMISSION)


_TEMPORARY = frozenset((FailureKind.TRANSIENT, FailureKind.RATE_LIMITED, FailureKind.TIMEOUT, FailureKind.DISCONNECTED))


@dataclass(frozen=True, slots=True)
class Failure:
    """`status` is the upstream's HTTP status (0: none came); `field` the request's field that it complains of.

    `salvage` is the model's own text, where the error quotes it; `retry_after` is in seconds.
    """

    kind: FailureKind
    message: str
    status: int = 0
    field: str = ""
    salvage: str = ""
    retry_after: float | None = None
    echoed: bool = False
    """The class rests on words that the request itself supplied: one client could have written this error."""
    basis: tuple[int, str] = dataclasses.field(default=(0, ""), repr=False, compare=False)
    """The status and the normalised words from which `kind` was read, so that it can be read again without echoes."""

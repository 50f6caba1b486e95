"""All exceptions that toolspeak raises to its callers.

    ToolspeakError
    ├── BadRequest        the caller's request cannot be understood or is over a limit
    │   └── BadField      a field of a body has the wrong type or value
    │       └── TooLarge  a body, or one field of it, is larger than the gateway accepts
    ├── BadSchema         a tool's JSON Schema cannot be used
    ├── BadJson           a text is not JSON, and cannot be repaired without guessing
    ├── BadFrame          a byte stream breaks the SSE or NDJSON framing, or its limits
    ├── BadConfig         a configuration cannot be used
    ├── MissingExtra      an optional package is not installed
    ├── UnknownName       no dialect (or wire, or upstream) has that name
    │   ├── UnknownModel  no upstream has a model of that name, and only known ones are served
    │   └── UnknownRun    no run has that id
    ├── TooManyRuns       a tenant has reached its limit of live runs
    ├── RunsUnavailable   the database of runs does not respond
    ├── ServerLost        a model server that toolspeak runs did not start, or died too often
    ├── McpFailed         an MCP server cannot be reached, or its tools cannot be used
    ├── ClientClosed      a client of the library was closed before or during the call
    └── UpstreamFailed    the upstream gave no answer, or interrupted it

The core returns complaints as values; exceptions are for callers' mistakes and for bytes that violate a protocol.
"""

from typing import ClassVar


class ToolspeakError(Exception):
    """The base of all errors: the HTTP status that it means, and whether a retry can help."""

    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False


class BadRequest(ToolspeakError):
    """The request names something that does not exist, or is over a limit."""

    status = 400


class BadField(BadRequest):
    """A field of a body has the wrong type or value; `field` is its path, such as `messages[0].content`."""

    def __init__(self, field: str, problem: str) -> None:
        """Name the field; `problem` has the value and what would be accepted."""
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class NotStored(BadField):
    """A request names a response, or an item of one, that is not stored. `code` is the protocol's word for it."""

    status = 404

    def __init__(self, field: str, message: str, code: str) -> None:
        """Take the message as clients of the protocol know it."""
        super().__init__("", message)
        self.field, self.code = field, code


class UnknownPrevious(NotStored):
    """The response that a request continues is not stored. OpenAI answers 400 here, and 404 everywhere else."""

    status = 400


class TooLarge(BadField):
    """A body, or one field of it, is larger than a limit of the configuration."""

    status = 413


class BadSchema(BadRequest):
    """A tool's JSON Schema is too large, too deep, or not a schema."""


class BadJson(ToolspeakError):
    """A text is not JSON, and cannot be repaired without guessing. `position` is a character index into the text."""

    status = 400

    def __init__(self, message: str, position: int = 0) -> None:
        """Keep the position, which the message to the model points at."""
        super().__init__(message)
        self.position = position


class BadFrame(ToolspeakError):
    """The peer's event stream violates its framing or exceeds a limit."""

    status = 502
    retryable = True


class BadConfig(ToolspeakError):
    """A configuration cannot be used. `problems` has one line for each problem; none contains an API key."""

    def __init__(self, *problems: str) -> None:
        """Join all problems, one per line."""
        super().__init__("\n".join(problems))
        self.problems = problems


class MissingExtra(ToolspeakError):
    """An optional package is not installed; the message has the command that installs it. `extra` is its name."""

    def __init__(self, purpose: str, extra: str) -> None:
        """Take what needs the package, such as a command or a setting."""
        super().__init__(f"{purpose} needs an optional package: pip install 'toolspeak[{extra}]'")
        self.extra = extra


class UnknownName(BadRequest):
    """Nothing is registered under that name."""


class UnknownModel(UnknownName):
    """No upstream has a model of that name, and the configuration says `unknown_models = "strict"`."""

    status = 404


class UnknownRun(UnknownName):
    """No run has that id."""

    status = 404


class TooManyRuns(ToolspeakError):
    """A run may not start or resume: its tenant has `live` runs, which is the limit."""

    status = 429
    retryable = True

    def __init__(self, live: int) -> None:
        """Keep the limit that was reached."""
        super().__init__(f"{live} runs go on already (runs.live): wait until one has ended, or cancel one")
        self.live = live


class RunsUnavailable(ToolspeakError):
    """The database of runs refused the connection or did not respond in time. Nothing that it stores is lost."""

    status = 503
    retryable = True


class CellUnavailable(RunsUnavailable):
    """One of several databases of runs does not respond; `cell` is its name. Runs of the other cells go on."""

    def __init__(self, cell: str) -> None:
        """Keep the cell's name."""
        super().__init__(
            f"the cell {cell} of runs does not respond: try again in some seconds; its runs are not lost, and those of "
            "other cells go on"
        )
        self.cell = cell


class ServerLost(ToolspeakError):
    """A model server that toolspeak runs did not start, or died too often."""

    status = 503


class McpFailed(ToolspeakError):
    """An MCP server cannot be reached, or its tools have changed since they were approved."""

    status = 502


class ClientClosed(ToolspeakError, RuntimeError):
    """The client was closed before or during the call. Make a new one; a closed client does not open again."""


class UpstreamFailed(ToolspeakError):
    """No whole answer came. `kind` is the class of the failure, `upstream_status` the HTTP status (0: none came)."""

    status = 502

    def __init__(self, message: str, kind: str, upstream_status: int = 0) -> None:
        """Keep the class of the failure and the HTTP status; `message` has the upstream's words, without secrets."""
        super().__init__(message)
        self.kind = kind
        self.upstream_status = upstream_status

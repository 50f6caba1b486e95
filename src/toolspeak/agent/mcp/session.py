"""The SDK's session, with a server's output schema checked by our own validators.

The SDK would match a server's patterns with an engine that backtracks: `^(a+)+$` and thirty letters stop the whole
process. Ours run in linear time and fetch nothing; a schema over its limits is not checked at all.
"""

from typing import Any, Final

from mcp import ClientSession, types
from mcp.client._transport import TransportStreams
from mcp.client.session import MessageHandlerFnT
from typing_extensions import override

from toolspeak.errors import BadSchema
from toolspeak.text.schema import Validator, compile_schema


class InvalidToolResult(Exception):
    """A result breaks the schema that its server declares."""

    def __init__(self, result: types.CallToolResult, problems: str) -> None:
        """Keep the result: its tool has run."""
        super().__init__(problems)
        self.result: Final = result


class Session(ClientSession):
    """A session whose `outputs` are the validators of the tools that were listed last."""

    def __init__(self, streams: TransportStreams, seconds: float, heard: MessageHandlerFnT) -> None:
        """Speak over streams; `heard` gets what the server says unasked."""
        super().__init__(*streams, seconds, message_handler=heard)
        self.outputs: Final[dict[str, Validator]] = {}

    def expect(self, name: str, schema: dict[str, Any] | None) -> None:
        """Note what a tool declares to return."""
        if schema is None:
            return
        try:
            self.outputs[name] = compile_schema(schema)
        except BadSchema:
            self.outputs.pop(name, None)

    @override
    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Raise `InvalidToolResult` if a result is not what its tool declares."""
        validator = self.outputs.get(name)
        if validator is None:
            return
        if result.structured_content is None:
            raise InvalidToolResult(result, "there is no structured content")
        try:
            problems = validator.problems(result.structured_content)
        except BadSchema:
            return
        if problems:
            raise InvalidToolResult(
                result, "; ".join(f"{each.path or '/'} {each.found}, accepted: {each.accepted}" for each in problems)
            )

"""All tools of a run by name. Each call gets exactly one result of limited size, whatever its tool does (RUN-4).

A toolbox has no state per call, so calls may run concurrently. The size of a result is limited because a run keeps
every result and sends it to the model again in each round.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import jiter
import msgspec

from toolspeak.agent.tools.action import OUTPUT, Action, CallContext, ToolOutput, text_output
from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Image, Opaque, Result, ResultPart, Text, ToolReference, part_text
from toolspeak.ir.tool import Tool
from toolspeak.text.display import cut
from toolspeak.toolset.toolset import ToolSet

IMAGES: Final = 4
IMAGE_BYTES: Final = 4 << 20
"""Maximum bytes of all images of a result, as base64."""


def fit_output(content: Iterable[ResultPart], most: int) -> tuple[ResultPart, ...]:
    """Cut texts that are too long, alone or together, and replace surplus or oversized images by a note.

    Texts that are too long together become one text, before all other parts.
    """
    pieces = tuple(_without_surplus(content))
    texts = [piece.text for piece in pieces if isinstance(piece, Text)]
    if sum(_size(text) + 1 for text in texts) <= most + 1:
        return pieces
    others = (piece for piece in pieces if not isinstance(piece, Text))
    return (Text(cut("\n".join(texts), most)), *others)


def _without_surplus(content: Iterable[ResultPart]) -> Iterable[ResultPart]:
    count, left = 0, IMAGE_BYTES
    for piece in content:
        if isinstance(piece, Text):
            yield _writable(piece)
            continue
        size = _weight(piece)
        if count == IMAGES or size > left:
            yield Text(f"{part_text(piece)} ({size} bytes; at most {IMAGES} and {IMAGE_BYTES} bytes together)")
        else:
            count, left = count + 1, left - size
            yield piece


def _weight(piece: Image | ToolReference | Opaque) -> int:
    match piece:
        case Image():
            return len(piece.data) + len(piece.url)
        case ToolReference():
            return len(piece.name)
        case Opaque():
            return len(msgspec.json.encode(piece.vendor.fields))


def _writable(piece: Text) -> Text:
    """Replace lone surrogates: a file's name may contain them, JSON cannot."""
    if piece.text.isascii():
        return piece
    text = piece.text.encode("utf-8", "replace").decode()
    return piece if text == piece.text else Text(text, piece.vendor)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


__all__ = ["OUTPUT", "Toolbox"]


class Toolbox:
    """Runs calls. Raises `BadField` for two tools of one name, and for a name or schema that no upstream accepts."""

    def __init__(self, actions: Iterable[Action], output: int = OUTPUT) -> None:
        """Take the tools, and the maximum bytes of a result."""
        self._actions: Final[dict[str, Action]] = {}
        self._output: Final = output
        for action in actions:
            if action.name in self._actions:
                raise BadField("tools", f"two tools are called {action.name!r}")
            self._actions[action.name] = action
        self.tools: Final[tuple[Tool, ...]] = tuple(action.tool for action in self._actions.values())
        """The tools as the model sees them."""
        self._set: Final = ToolSet.of(self.tools)

    @property
    def ending(self) -> frozenset[str]:
        """Return the names of the tools whose call ends a run."""
        return frozenset(action.name for action in self._actions.values() if action.ends)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all tools."""
        return tuple(self._actions)

    def action(self, name: str) -> Action | None:
        """Return the tool with this name; None if there is none."""
        return self._actions.get(name)

    async def run(self, call: Call, context: CallContext) -> Result:
        """Run a call and return its result. Only cancellation raises.

        The output of an ending tool is not cut: it is the final text, and people read it whole.
        """
        yielded = await self._yield(call, context)
        # An error of an ending tool goes to the model, so it is cut like any other.
        whole = call.name in self.ending and not yielded.is_error
        content = yielded.content if whole else fit_output(yielded.content, self._output)
        return Result(call.id, content, call.name, yielded.is_error)

    async def _yield(self, call: Call, context: CallContext) -> ToolOutput:
        action = self._actions.get(call.name)
        if action is None:
            known = ", ".join(self._actions) or "none"
            return text_output(f"There is no tool {call.name!r}; there are: {known}.", is_error=True)
        try:
            return await _in_time(action, self._arguments(call), context)
        except Exception as error:  # noqa: BLE001 # a failure of a tool is a result that the model handles
            return text_output(f"{call.name} failed: {_told(error)}", is_error=True)
        # A tool that raises `CancelledError` by itself (from a cancelled subtask) must not look like a cancelled run.
        # Only a request to cancel this task counts.
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return text_output(f"{call.name} failed: it cancelled itself", is_error=True)

    def _arguments(self, call: Call) -> JsonObject:
        """Parse and check a call's arguments. Those of a run were checked before; those of other callers were not."""
        try:
            read: Json = jiter.from_json(call.arguments.encode() or b"{}")
        except ValueError as error:
            raise BadField("arguments", f"{call.arguments[:80]!r} is not JSON: {error}") from None
        if not isinstance(read, dict):
            raise BadField("arguments", f"{call.arguments[:80]!r} is not a JSON object")
        fitted = self._set.fit(call.name, read)
        if fitted.problems:
            raise BadField("arguments", "; ".join(problem.message for problem in fitted.problems))
        return fitted.arguments


async def _in_time(action: Action, arguments: JsonObject, context: CallContext) -> ToolOutput:
    limit = asyncio.timeout(action.seconds)
    try:
        async with limit:
            return await action.act(arguments, context)
    except TimeoutError:
        if not limit.expired():  # the tool's own timeout, which is an ordinary failure
            raise
        late = f"{action.name} was stopped after {action.seconds:g} seconds; what it did until then is done."
        return text_output(late, is_error=True)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _told(error: Exception) -> str:
    """Return the message of an error. Messages of `BadField` are complete; others get the name of their class."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 # `__str__` of a foreign exception may fail too
        text = ""
    return text if isinstance(error, BadField) else f"{type(error).__name__}: {text}".removesuffix(": ")

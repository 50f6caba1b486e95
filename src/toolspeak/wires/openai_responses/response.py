"""The response object: the same in the first events, in the last one, and as a whole answer."""

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.wires._body import dump
from toolspeak.wires._loose import inner, string
from toolspeak.wires._wire import Stamp
from toolspeak.wires.openai_responses.choice import choice_body
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.outgoing import instructions_of, reasoning_body, text_body
from toolspeak.wires.openai_responses.tools import write_tools
from toolspeak.wires.openai_responses.words import NAME


class ResponseWriter:
    """Writes the response at any point of one answer. What the client has asked is written once."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Take the client's request and the marks of this answer."""
        self._head: JsonObject = {"id": f"resp_{stamp.id}", "object": "response", "created_at": stamp.created}
        self._echo = dump(_echo(request))[1:]

    def write(
        self,
        status: str,
        output: list[Json],
        usage: JsonObject | None = None,
        *,
        error: JsonObject | None = None,
        reason: str = "",
    ) -> bytes:
        """Write it; `reason` says why it is incomplete."""
        details: JsonObject | None = {"reason": reason} if reason else None
        state: JsonObject = {"status": status, "error": error, "incomplete_details": details}
        return dump({**self._head, **state, "output": output, "usage": usage})[:-1] + b"," + self._echo


def _echo(request: Request) -> JsonObject:
    extra, names, sampling = request.extra.get(NAME, {}), UpstreamNames(request), request.sampling
    return {
        "model": request.model,
        "instructions": instructions_of(request.messages) or None,
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "tools": write_tools(request, names),
        "tool_choice": choice_body(request, names),
        "parallel_tool_calls": request.choice.parallel,
        "text": {"format": {"type": "text"}, **inner(text_body(request), "text")},
        "reasoning": {"effort": None, "summary": None, **inner(reasoning_body(request), "reasoning")},
        "truncation": string(extra.get("truncation")) or "disabled",
        "metadata": inner(extra, "metadata"),
        "previous_response_id": None,
        "store": False,  # whatever was asked: nothing is stored here
        "background": False,
    }


def encode_count(tokens: int) -> JsonObject:
    """Tell the tokens of a request."""
    return {"object": "response.input_tokens", "input_tokens": tokens}

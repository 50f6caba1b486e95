"""Sends the cases through a gateway whose upstream is the scripted model, and judges what comes back.

with serve_scripted(model, "127.0.0.1", 8099):
await trial.wait_until_connected(120)
results = await trial.run(cases, progress)
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from toolspeak.conformance.cases import STREAM, CaseVerdict, ConformanceCase
from toolspeak.conformance.protocol import ReceivedAnswer, judge_error, judge_stream, judge_whole
from toolspeak.conformance.upstream import HELLO, MODEL, ScriptedModel, case_token
from toolspeak.errors import ToolspeakError
from toolspeak.ir.json import Json, JsonObject
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.transport import Timeouts, TransportError
from toolspeak.text.strict import dump

_OK: Final = 200
_DENIED: Final = (401, 403)
_QUOTED: Final = 200
"""Bytes of an unexpected response that a message shows."""
_PAUSE: Final = 1.0
"""Seconds between two attempts to reach the scripted upstream through the gateway."""
_PROMPT: Final = "Please do what is needed for {token}, with the tools if they help."
_LARGEST: Final = 64 * 1024 * 1024
"""Bytes of one response that are read."""


class NotReached(ToolspeakError):
    """The server does not answer, or its requests do not arrive at the scripted upstream."""


@dataclass(frozen=True, slots=True)
class TrialTarget:
    """The server on trial, and how it is asked."""

    url: str
    """The base URL, such as `http://127.0.0.1:4141/v1`."""
    model: str = MODEL
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 60.0
    """Seconds for one response."""
    parallel: int = 4
    """Requests at a time."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of one case, asked for in one way."""

    case: ConformanceCase
    way: str
    verdict: CaseVerdict
    answer: ReceivedAnswer
    requests: int = 1
    """Requests that the upstream got for it; more than one means that the gateway asked the model again."""

    @property
    def is_right(self) -> bool:
        """Whether the client got the right thing in the right form."""
        return self.verdict is CaseVerdict.RIGHT and not self.answer.problems


class ChatClient:
    """Sends chat requests, and judges the form of each response."""

    def __init__(self, target: TrialTarget) -> None:
        """Prepare a client."""
        self.target: Final = target
        self._timeouts: Final = Timeouts(first_byte=target.timeout, idle=target.timeout, total=target.timeout)

    async def ask(self, body: JsonObject, way: str) -> ReceivedAnswer:
        """Send a request and judge the response. Raises `TransportError` if no connection was made."""
        try:
            status, media_type, data = await self.exchange("POST", "/chat/completions", _asked_for(body, way))
        except TransportError as error:
            if not error.connected:
                raise
            return ReceivedAnswer(error=str(error), problems=(f"the response broke off: {error}",))
        if status != _OK:
            return judge_error(status, data)
        if way != STREAM:
            return judge_whole(data)
        if not media_type.startswith("text/event-stream"):
            return ReceivedAnswer(problems=(f"a stream was asked for, and the content-type is {media_type!r}",))
        return judge_stream(data)

    async def exchange(self, method: str, path: str, body: JsonObject | None = None) -> tuple[int, str, bytes]:
        """Send one request; return status, content-type and body. Raises `TransportError`."""
        sent = dump(body).encode() if body is not None else b""
        headers = [("content-type", "application/json"), *self.target.headers]
        url = self.target.url.rstrip("/") + path
        # A connection for each request: forge 0.10 promises keep-alive after a stream and closes all the same, and a
        # trial is about calls.
        transport = HttpTransport()
        try:
            response = await transport.send(method, url, headers, sent, self._timeouts)
            data = bytearray()
            while (piece := await response.read()) and len(data) <= _LARGEST:
                data += piece
            response.close()
        finally:
            await transport.close()
        return response.status, response.headers.get("content-type", ""), bytes(data)


def _asked_for(body: JsonObject, way: str) -> JsonObject:
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if way == STREAM else body


class GatewayTrial:
    """One trial of a gateway."""

    def __init__(self, client: ChatClient, model: ScriptedModel, *, names_models: bool = False) -> None:
        """Prepare a trial. With `names_models` a case is sent under the name of the model that wrote its text."""
        self._client: Final = client
        self._model: Final = model
        self._names_models: Final = names_models
        self._numbers: Final = count(1)

    async def wait_until_connected(self, seconds: float) -> None:
        """Send a request again and again until it arrives at the scripted upstream. Raises `NotReached`."""
        target, now = self._client.target, asyncio.get_running_loop().time
        end = now() + seconds
        while True:
            token = case_token(HELLO, next(self._numbers))
            became = await self._knock(token)
            if self._model.asked.get(token):
                return
            if now() >= end:  # after the attempt, so that there is always one to tell of
                break
            await asyncio.sleep(min(_PAUSE, seconds))
        raise NotReached(
            f"no request reached the scripted upstream through {target.url} within {seconds:g} s: {became}. Start the "
            f"gateway, let it send the model {target.model!r} to the address above, and pass its base URL; --wait "
            "SECONDS waits longer."
        )

    async def _knock(self, token: str) -> str:
        """Send one greeting; return what became of it. Raises `NotReached` if the gateway wants another key."""
        message: Json = {"role": "user", "content": f"Say hello to {token}."}
        body: JsonObject = {"model": self._client.target.model, "messages": [message]}
        try:
            status, _, data = await self._client.exchange("POST", "/chat/completions", body)
        except TransportError as error:
            return f"the gateway does not answer ({error})"
        said = data[:_QUOTED].decode("utf-8", "replace")
        if status in _DENIED:
            raise NotReached(
                f"{self._client.target.url} answered with status {status} and {said!r}. Pass a --key that it accepts."
            )
        return f"the gateway answered with status {status} and {said!r}, without asking the scripted upstream"

    async def run(
        self, cases: Sequence[ConformanceCase], progress: Callable[[int, int], None], cuts: int = 1
    ) -> list[TrialResult]:
        """Send every case, whole once and streamed `cuts` times; return the results in the order of the cases.

        Raises `NotReached` if the gateway stops answering.
        """
        ways = [(case, way) for case in cases for way in case.ways for _ in range(cuts if way == STREAM else 1)]
        results: dict[int, TrialResult] = {}
        waiting = iter(enumerate(ways))

        async def work() -> None:
            for place, (case, way) in waiting:
                results[place] = await self._result(case, way)
                progress(len(results), len(ways))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._client.target.parallel, len(ways))):
                    group.create_task(work())
        except* TransportError as errors:
            raise NotReached(
                f"{self._client.target.url} stopped answering after {len(results)} of {len(ways)} requests: "
                f"{errors.exceptions[0]}. Look into its log; --only ID sends one case."
            ) from None
        return [results[place] for place in sorted(results)]

    async def _result(self, case: ConformanceCase, way: str) -> TrialResult:
        token = case_token(case.id, next(self._numbers))
        answer = await self._client.ask(self._request(case, token), way)
        requests = self._model.asked.get(token, 0)
        complains = requests > 1 or bool(answer.error)
        verdict = case.judge(list(answer.calls), answer.text, complains=complains)
        if answer.error and not answer.calls and case.has_text:
            verdict = CaseVerdict.REFUSED  # no call may be right, but the client got no text either
        return TrialResult(case, way, verdict, answer, requests)

    def _request(self, case: ConformanceCase, token: str) -> JsonObject:
        message: Json = {"role": "user", "content": _PROMPT.format(token=token)}
        tools: list[Json] = [{"type": "function", "function": function} for function in case.functions]
        name = case.model if self._names_models and case.model else self._client.target.model
        body: JsonObject = {"model": name, "messages": [message]}
        if tools:
            body["tools"] = tools
        if case.tool_choice is not None:
            body["tool_choice"] = case.tool_choice
        if not case.parallel:
            body["parallel_tool_calls"] = False
        return body

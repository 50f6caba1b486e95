"""LiteLLM's provider `toolspeak`: `toolspeak/MODEL` in its SDK, and in the `config.yaml` of its proxy.

    litellm.custom_provider_map = [{"provider": "toolspeak", "custom_handler": provider("http://127.0.0.1:8080/v1")}]

Each call is a request of OpenAI Chat Completions to the application of `toolspeak.transport` in this process. Only
LiteLLM's own ways are handled here: which arguments of a call are the request, in which order LiteLLM reads the end of
a stream, and which exceptions it maps.
"""

# LiteLLM is not a dependency, so that its types are unknown here. `just hosts` runs this with the real package.
# pyright: basic, reportMissingImports=false, reportGeneralTypeIssues=false

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeAlias, TypeVar, Unpack

import httpx  # LiteLLM's own client
import litellm
import msgspec
from litellm.llms.custom_llm import CustomLLM, CustomLLMError
from litellm.types.utils import ModelResponse, ModelResponseStream
from typing_extensions import override

from toolspeak.config.shape import Config
from toolspeak.errors import ToolspeakError
from toolspeak.runtime.outbound import origin_of
from toolspeak.text.sse import SseDecoder
from toolspeak.transport import AsyncTransport, Transport, TransportOptions
from toolspeak.transport.source import load_source

ClientT = TypeVar("ClientT", httpx.Client, httpx.AsyncClient)
LiteLLMCall: TypeAlias = dict[str, Any]
"""LiteLLM's arguments of `completion` and its three relatives, by name."""
PROVIDER: Final = "toolspeak"
MOST_CLIENTS: Final = 64
"""Upstreams whose connections are kept. A proxy can let its clients choose `api_base`, so that there may be many."""


def provider(upstream: str = "", **options: Unpack[TransportOptions]) -> "ToolspeakLLM":
    """Return a `custom_handler` for LiteLLM's `custom_provider_map`.

    The arguments are those of `toolspeak.Transport`, for calls without an `api_base`. A call with an `api_base` goes to
    that server, with the same options except `key`. Nothing is read or connected yet.
    """
    return ToolspeakLLM(upstream, options)


class ToolspeakLLM(CustomLLM):
    """Answers LiteLLM's calls. Threads and event loops may share it.

    All methods raise exceptions of LiteLLM, or such that LiteLLM maps to its own by their status.
    """

    def __init__(self, upstream: str, options: TransportOptions) -> None:
        """Take the upstream of calls that name none."""
        super().__init__()
        self._upstream: Final = upstream
        self._options: Final = options
        self._clients: Final = _Clients[httpx.Client]()
        self._async_clients: Final = _Clients[httpx.AsyncClient]()

    @override
    def completion(self, **call: Any) -> ModelResponse:
        """Return a whole answer."""
        with _mappable_errors(call):
            response = self._client(call["api_base"]).post(_PATH, **_request(call))
            return ModelResponse(**_answer(response))

    @override
    def streaming(self, **call: Any) -> Generator[ModelResponseStream]:
        """Return the chunks of an answer that the upstream has begun: an error before that is raised here."""
        with _mappable_errors(call):
            client = self._client(call["api_base"])
            response = client.send(client.build_request("POST", _PATH, **_request(call, stream=True)), stream=True)
            if response.is_error:
                response.read()
                _answer(response)
        return self._chunks(call, response)

    def _chunks(self, call: LiteLLMCall, response: httpx.Response) -> Generator[ModelResponseStream]:
        reader = _ChunkReader()
        with _mappable_errors(call):
            try:
                for data in response.iter_raw():
                    yield from reader.feed(data)
            finally:
                response.close()
        yield from reader.finish()

    @override
    async def acompletion(self, **call: Any) -> ModelResponse:
        """Return a whole answer."""
        with _mappable_errors(call):
            client = await self._async_client(call["api_base"])
            return ModelResponse(**_answer(await client.post(_PATH, **_request(call))))

    @override
    async def astreaming(self, **call: Any) -> AsyncGenerator[ModelResponseStream]:
        """Yield the chunks of an answer. LiteLLM begins to read them when its caller does, and raises errors there."""
        reader = _ChunkReader()
        with _mappable_errors(call):
            client = await self._async_client(call["api_base"])
            async with client.stream("POST", _PATH, **_request(call, stream=True)) as response:
                if response.is_error:
                    await response.aread()
                    _answer(response)
                async for data in response.aiter_raw():
                    for chunk in reader.feed(data):
                        yield chunk
        for chunk in reader.finish():
            yield chunk

    # ---------------------------------------------------------------- clients

    def _client(self, api_base: str | None) -> httpx.Client:
        if client := self._clients.find(api_base):
            return client
        config = self._config(api_base)
        client = httpx.Client(transport=Transport(config=config), base_url=_base_url(config))
        return self._clients.add(client, api_base)

    async def _async_client(self, api_base: str | None) -> httpx.AsyncClient:
        if client := self._async_clients.find(api_base, asyncio.get_running_loop()):
            return client
        config = await asyncio.to_thread(self._config, api_base)  # it reads files, and may search for a local server
        client = httpx.AsyncClient(transport=AsyncTransport(config=config), base_url=_base_url(config))
        return self._async_clients.add(client, api_base, asyncio.get_running_loop())

    def _config(self, api_base: str | None) -> Config:
        if not api_base or api_base == self._upstream:
            return load_source(self._upstream, self._options)
        options = self._options.copy()
        options.pop("key", None)  # it is a secret of another server
        return load_source(api_base, options)


def _base_url(config: Config) -> str:
    """Return the base URL of a client: the transport sends the key of a call to the upstream that it names.

    Among several upstreams it is not clear which one the key is for, so that none gets it.
    """
    only = config.upstreams[0].url if len(config.upstreams) == 1 else "http://toolspeak.invalid"
    return f"{origin_of(only)}/v1"


class _Clients(Generic[ClientT]):
    """The clients of the upstreams in use. One that is dropped ends its application when its last response has ended.

    A client with `await` belongs to its event loop, and a program that calls `asyncio.run` for each question has many.
    """

    def __init__(self) -> None:
        self._kept: Final[OrderedDict[tuple[str | None, asyncio.AbstractEventLoop | None], ClientT]] = OrderedDict()
        self._lock: Final = threading.Lock()

    def find(self, api_base: str | None, loop: asyncio.AbstractEventLoop | None = None) -> ClientT | None:
        with self._lock:
            client = self._kept.get((api_base, loop))
            if client is not None:
                self._kept.move_to_end((api_base, loop))
            return client

    def add(self, client: ClientT, api_base: str | None, loop: asyncio.AbstractEventLoop | None = None) -> ClientT:
        """Return the client, or the one that another thread or task has added in the meantime."""
        with self._lock:
            for key in [key for key in self._kept if key[1] is not None and key[1].is_closed()]:
                del self._kept[key]
            kept = self._kept.setdefault((api_base, loop), client)
            if len(self._kept) > MOST_CLIENTS:
                self._kept.popitem(last=False)
            return kept


# ---------------------------------------------------------------- requests and answers

_PATH: Final = "/chat/completions"
_NO_FIELDS: Final = frozenset({"extra_body", "extra_headers", "max_retries", "stream", "stream_options"})
"""Parameters for SDKs. LiteLLM and toolspeak retry by themselves."""


def _request(call: LiteLLMCall, *, stream: bool = False) -> dict[str, Any]:
    """Return the arguments of an httpx request. LiteLLM's parameters are fields of the body as they are.

    A stream always has its usage: LiteLLM counts tokens also for clients that did not ask for them.
    """
    params = call["optional_params"]
    body = {
        "model": call["model"],
        "messages": call["messages"],
        **{name: value for name, value in params.items() if name not in _NO_FIELDS},
        **(params.get("extra_body") or {}),
    }
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    key = {"authorization": f"Bearer {call['api_key']}"} if call["api_key"] else {}
    return {"json": body, "headers": {**key, **(call["headers"] or {})}, "timeout": call["timeout"]}


def _answer(response: httpx.Response) -> dict[str, Any]:
    """Return the body of a response. Raises `ToolspeakLLMError` for an error."""
    body: dict[str, Any] = msgspec.json.decode(response.content)
    if response.is_error:
        raise ToolspeakLLMError(body["error"], response)
    return body


class _ChunkReader:
    """Reads the chunks of a stream, and puts the one with the `finish_reason` last.

    OpenAI's protocol sends the usage after it. LiteLLM 1.106 stops reading a custom provider's stream at the first
    chunk without content after a `finish_reason`, and would count the tokens itself, by another model's tokenizer.
    """

    def __init__(self) -> None:
        self._decoder: Final = SseDecoder()
        self._last: ModelResponseStream | None = None

    def feed(self, data: bytes) -> Generator[ModelResponseStream]:
        for frame in self._decoder.feed(data):
            if frame.data == "[DONE]":
                continue
            body = msgspec.json.decode(frame.data)
            if "error" in body:
                raise ToolspeakLLMError(body["error"])
            chunk = ModelResponseStream(**body)
            if chunk.choices and chunk.choices[0].finish_reason:
                self._last = chunk
            else:
                yield chunk

    def finish(self) -> Generator[ModelResponseStream]:
        if self._last is not None:
            yield self._last


# ---------------------------------------------------------------- errors

_BROKE_OFF: Final = 502
"""The status of other errors inside of a stream: the request was good, for the upstream had begun to answer it."""
_STATUS_OF_TYPE: Final = {
    "authentication_error": 401,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "permission_error": 403,
    "rate_limit_error": 429,
}


class ToolspeakLLMError(CustomLLMError):
    """An error of the application. LiteLLM maps it by its status, and reads `retry-after` in its response."""

    def __init__(self, error: dict[str, Any], response: httpx.Response | None = None) -> None:
        """Take the body of an error. Inside of a stream there is no status: only the type tells what happened."""
        status = _STATUS_OF_TYPE.get(error["type"], _BROKE_OFF) if response is None else response.status_code
        super().__init__(status, error["message"])
        self.code: Final = error["code"]
        if response is not None:
            self.response = response


@contextmanager
def _mappable_errors(call: LiteLLMCall) -> Generator[None]:
    """Raise exceptions of LiteLLM, or such that it maps to its own by their status."""
    about = {"model": call["model"], "llm_provider": PROVIDER}
    try:
        yield
    except ToolspeakLLMError as error:
        if error.code != "context_length_exceeded":
            raise
        # LiteLLM has fallbacks for this one, and finds it by its class.
        raise litellm.ContextWindowExceededError(message=error.message, **about) from error
    except httpx.TimeoutException as error:
        raise litellm.Timeout(message=str(error), **about) from error
    except httpx.TransportError as error:
        raise litellm.APIConnectionError(message=str(error), **about) from error
    except ToolspeakError as error:
        raise CustomLLMError(error.status, str(error)) from error


handler: Final = provider()
"""The `custom_handler` for a `config.yaml`, where each model has its own `api_base`."""

"""Servers of this machine are found by what they answer, on real sockets."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from toolspeak.local.detection import LocalServer, find_local
from toolspeak.runtime.http_transport import HttpTransport


@dataclass(frozen=True)
class Scene:
    """A server: what it answers at each path, with which headers, after how long."""

    answers: dict[str, object] = field(default_factory=dict[str, object])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 200
    pause: float = 0.0
    otherwise: object = None
    """What it answers at all other paths, with 200."""


def models(owner: str, *names: str) -> object:
    return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": owner} for name in names]}


OLLAMA = Scene(
    {
        "/api/version": {"version": "0.13.0"},
        "/api/tags": {"models": [{"name": "qwen3:4b", "model": "qwen3:4b", "size": 1}]},
        "/v1/models": models("library", "qwen3:4b"),
    },
)
EMPTY_OLLAMA = Scene({"/api/version": {"version": "0.13.0"}, "/api/tags": {"models": []}, "/v1/models": {"data": None}})
LLAMACPP = Scene({"/v1/models": {"models": [{"name": "q"}], "data": [{"id": "q", "owned_by": "llamacpp"}]}})
LOADING = Scene({"/v1/models": {"error": {"message": "Loading model"}}}, {"Server": "llama.cpp"}, 503)
LMSTUDIO = Scene({"/v1/models": models("organization_owner", "a")}, otherwise={"error": "Unexpected endpoint"})
OTHER_LMSTUDIO = Scene(
    {
        "/v1/models": models("someone", "a", "e"),
        "/api/v0/models": {"data": [{"id": "a", "type": "llm"}, {"id": "e", "type": "embeddings"}]},
    },
    otherwise={"error": "Unexpected endpoint"},
)
VLLM = Scene({"/v1/models": models("vllm", "org/m")})
SGLANG = Scene({"/v1/models": models("sglang", "org/m")})
STRANGER = Scene({"/v1/models": models("someone", "m")})
OURS = Scene({**OLLAMA.answers, "/v1/models": models("llamacpp", "m")}, {"X-Toolspeak-Trace": "5f3e"})
EMPTY_OURS = Scene({**EMPTY_OLLAMA.answers}, {"x-toolspeak-trace": "5f3e"})
GARBAGE = Scene(otherwise="<html>")
LISTS = Scene(otherwise=[1, 2])
SILENT = Scene(pause=30)


@asynccontextmanager
async def served(scene: Scene, asked: list[str]) -> AsyncGenerator[str, None]:
    """Run a server, and give its place."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                asked.append(path)
                await asyncio.sleep(scene.pause)
                found = scene.answers.get(path, scene.otherwise)
                body = b"" if found is None else json.dumps(found).encode()
                status = 404 if found is None else scene.status
                headers = "".join(f"{name}: {value}\r\n" for name, value in scene.headers.items())
                writer.write(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@dataclass(frozen=True)
class Search:
    """What was found, at which place, what was asked, and how long it took."""

    found: LocalServer | None
    place: int | None
    asked: list[list[str]]
    seconds: float


def search(scenes: Sequence[Scene | None]) -> Search:
    """Look at these servers in this order; None is a place where nobody listens."""

    async def run() -> Search:
        asked: list[list[str]] = [[] for _ in scenes]
        async with AsyncExitStack() as stack:
            places = [
                await stack.enter_async_context(served(scene, paths)) if scene else "http://127.0.0.1:9"
                for scene, paths in zip(scenes, asked, strict=True)
            ]
            transport = HttpTransport()
            loop = asyncio.get_running_loop()
            started = loop.time()
            found = await find_local(transport, places)
            seconds = loop.time() - started
            await transport.close()
        where = next((index for index, place in enumerate(places) if found and found.url.startswith(place)), None)
        return Search(found, where, asked, seconds)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("scene", "preset", "path", "names"),
    [
        (OLLAMA, "ollama", "", ("qwen3:4b",)),
        (EMPTY_OLLAMA, "ollama", "", ()),
        (LLAMACPP, "llamacpp", "/v1", ("q",)),
        (LOADING, "llamacpp", "/v1", ()),
        (LMSTUDIO, "lmstudio", "/v1", ("a",)),
        (OTHER_LMSTUDIO, "lmstudio", "/v1", ("a",)),
        (VLLM, "vllm", "/v1", ("org/m",)),
        (SGLANG, "sglang", "/v1", ("org/m",)),
    ],
)
def test_a_server_is_known_by_what_it_answers(scene: Scene, preset: str, path: str, names: tuple[str, ...]) -> None:
    done = search([scene])
    assert done.found is not None
    assert (done.found.preset, done.found.models) == (preset, names)
    assert done.found.url.partition("//")[2].partition("/")[2] == path.removeprefix("/")


@pytest.mark.parametrize("scene", [None, STRANGER, OURS, EMPTY_OURS, GARBAGE, LISTS, Scene()])
def test_what_is_none_of_them_is_not_taken(scene: Scene | None) -> None:
    assert search([scene]).found is None


def test_nobody_is_found_where_nobody_is() -> None:
    assert search([]).found is None
    done = search([None, None, None])
    assert done.found is None
    assert done.seconds < 0.5


def test_the_first_in_order_is_taken() -> None:
    done = search([None, STRANGER, VLLM, OLLAMA])
    assert done.found is not None
    assert (done.place, done.found.preset) == (2, "vllm")


def test_a_silent_server_holds_nobody_up_for_long() -> None:
    done = search([SILENT, SILENT, OLLAMA])
    assert done.place == 2
    assert done.seconds < 2
    assert search([OLLAMA, SILENT]).seconds < 0.5


def test_a_gateway_of_ours_is_asked_once_only() -> None:
    assert search([OURS]).asked == [["/v1/models"]]


def test_a_list_that_is_too_long_is_not_read() -> None:
    long = Scene({"/v1/models": models("vllm", "x" * (3 << 20))})
    done = search([long, SGLANG])
    assert done.place == 1

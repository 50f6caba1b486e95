"""The playground: one prompt, sent in up to four ways side by side (OBS-19).

Each column is a request of its own. Its turn goes through the gateway as that of any client: the same limits, the
session's key, an entry in the log, and a trace. Only the connection is the browser's: if the browser leaves, the turn
is cancelled.
"""

from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from toolspeak.dashboard.pages import render
from toolspeak.dashboard.playground import (
    AUTO,
    COLUMNS,
    DIALECT,
    LONGEST_PROMPT,
    NATIVE,
    PROMPT,
    RESCUE,
    TOOL_PLACES,
    ColumnView,
    EndedTurn,
    ended_column,
    first_ways,
    parse_definitions,
    ready_tools,
    running_column,
    taught_dialects,
)
from toolspeak.engine.settings import Mode
from toolspeak.errors import BadField
from toolspeak.gateway.exchange import Beat, Exchange, Gone, Headers, T
from toolspeak.gateway.model_pages import MOST_MODELS, look_at_models, permitted_models
from toolspeak.gateway.page_request import Page, PageRequest
from toolspeak.gateway.page_stream import PAUSE, PageStream, StreamOver
from toolspeak.gateway.turns import OwnTurn

_MOST_TOKENS: Final = 32_768
_TOKENS: Final = 1024
_NANO: Final = 1e9
_PATH: Final = "/v1/chat/completions"
_MODES: Final = {NATIVE: Mode.OFF, RESCUE: Mode.AUTO}


async def show_playground(request: PageRequest) -> Page:
    """Show the form; `?model=` chooses a model."""
    default = await look_at_models(request)
    models = [one.name for one in permitted_models(request, default)][:MOST_MODELS]
    wanted = request.query("model") or (default.alias or default.model if default is not None else "")
    chosen = wanted if wanted in models else next(iter(models), "")
    return request.page(
        "playground.html",
        title="Playground",
        models=models,
        chosen=chosen,
        prompt=PROMPT,
        tools=ready_tools(),
        ways=first_ways(chosen),
        dialects=await request.gateway.viewers.compute(taught_dialects),
        most_tokens=_MOST_TOKENS,
        tokens=_TOKENS,
    )


async def run_column(request: PageRequest) -> None:
    """Run one column of the form, and stream it. Raises `BadField` for a form that cannot be sent."""
    attempt = _read_form(await request.form())
    column = _Column(request, attempt, PageStream(request))
    await column.run()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One column of the form."""

    number: int
    body: bytes
    headers: dict[bytes, str]
    sends_tools: bool


def _read_form(form: dict[str, str]) -> _Attempt:
    number, prompt = _number(form, "column", 0, COLUMNS - 1), form.get("prompt", "")
    way, model = form.get(f"way_{number}", ""), form.get("model", "")
    if not prompt.strip():
        raise BadField("prompt", "it is empty: write what the model should do")
    if len(prompt) > LONGEST_PROMPT:
        raise BadField("prompt", f"it has {len(prompt)} characters, and at most {LONGEST_PROMPT} are sent from here")
    places = [place for place in range(TOOL_PLACES) if form.get(f"use_{place}")]
    texts = [text for place in places if (text := form.get(f"tool_{place}", "").strip())]
    body = {
        "model": model,
        "stream": True,
        "max_tokens": _number(form, "max_tokens", 1, _MOST_TOKENS),
        "messages": [{"role": "user", "content": prompt}],
        "tools": parse_definitions(texts),
    }
    return _Attempt(number, msgspec.json.encode(body), _headers(way), way == RESCUE)


def _number(form: dict[str, str], name: str, least: int, most: int) -> int:
    text = form.get(name, "")
    if not (text.isascii() and text.isdecimal() and least <= int(text[:9]) <= most):
        raise BadField(name, f"{text[:20]!r} is not a number from {least} to {most}")
    return int(text[:9])


def _headers(way: str) -> dict[bytes, str]:
    """Return the headers that choose how the request is handled."""
    if way == AUTO:
        return {}
    if way in _MODES:
        return {b"x-toolspeak-mode": _MODES[way].value}
    dialect = way.removeprefix(DIALECT)
    if not way.startswith(DIALECT) or dialect not in taught_dialects():
        raise BadField("way", f"{way[:40]!r} is not a way of this page")
    return {b"x-toolspeak-mode": Mode.FORCE.value, b"x-toolspeak-dialect": dialect}


class _Column:
    """Runs the turn of one column, and shows it to the browser while it runs."""

    def __init__(self, request: PageRequest, attempt: _Attempt, stream: PageStream) -> None:
        self._request: Final = request
        self._attempt: Final = attempt
        self._stream: Final = stream
        self._started: Final = request.gateway.clock.nanoseconds() / _NANO
        self._shown: str | None = None

    async def run(self) -> None:
        gateway = self._request.gateway
        own = _OwnExchange(self._request.exchange, self._attempt, self)
        await self._stream.start()
        self._request.response.entry.is_check = True  # the log has a line for the turn, and needs none for its page
        entry = await gateway.handle(own, OwnTurn(self._request.key, self._attempt.sends_tools))
        if own.is_left:
            return
        trace = entry.trace if gateway.traces.is_enabled else ""
        ended = EndedTurn(entry.outcome, entry.failure, entry.way, entry.seconds, trace)
        with suppress(StreamOver):  # the browser reads nothing any more
            await self._stream.send(_rendered(ended_column(self._attempt.number, ended)))
            await self._stream.end()

    async def show(self, text: str) -> None:
        """Show the text so far, if it has changed."""
        if text == self._shown:
            await self._stream.rest()
            return
        self._shown = text
        await self._stream.send(_rendered(running_column(self._attempt.number, text, self._started)))


def _rendered(view: ColumnView) -> bytes:
    return render("playground_column.html", column=view)


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


_decode: Final = msgspec.json.Decoder(_Chunk).decode
_DATA: Final = b"data: {"


class _OwnExchange:
    """A request to the gateway whose client is the browser of the playground. Implements `Exchange`."""

    def __init__(self, browser: Exchange, attempt: _Attempt, column: _Column) -> None:
        self.tenant = ""
        self.status = 0
        self.method: Final = "POST"
        self.path: Final = _PATH
        self.query: Final = ""
        self.is_left = False
        self._browser: Final = browser
        self._attempt: Final = attempt
        self._column: Final = column
        self._text = ""

    @property
    def client(self) -> str:
        return self._browser.client

    def headers(self, name: bytes) -> list[str]:
        if name == b"user-agent":
            return ["playground"]
        return [self._attempt.headers[name]] if name in self._attempt.headers else []

    async def body(self) -> bytes:
        return self._attempt.body

    async def start(self, status: int, headers: Headers) -> None:
        del headers  # the browser has its own since the beginning
        self.status = status

    writer_at_once = None

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Take more of the answer: its text is shown at the next beat, everything else at the end."""
        del last
        for frame in chunk.split(b"\n\n"):
            if frame.startswith(_DATA) and self.status == 200:  # noqa: PLR2004 # else it is an error
                found = _decode(frame[len(_DATA) - 1 :])
                self._text += "".join(choice.delta.content or "" for choice in found.choices)

    async def attended(self, work: Coroutine[object, object, T], beat: Beat) -> T:
        async def both() -> float:
            await beat()  # first: with it the response begins, before the turn can fail
            await self._column.show(self._text)
            return PAUSE

        try:
            return await self._browser.attended(work, both)
        except (Gone, StreamOver):
            self.is_left = True
            raise Gone from None

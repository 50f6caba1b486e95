"""toolspeak as a provider of litellm: what it raises when something fails, usage, several calls, keys, early ends."""

import asyncio
import gc
import socket
import sys
from functools import partial

import litellm
import rows
from rows import MODEL, OPENAI_TOOL, QUESTION, raised

sys.path.insert(0, str(rows.ROOT))
from testkit.scripted_upstream import hang, listening, refuse
from tests.hosts.model import call, plain_server
from toolspeak.integrations.litellm import provider

litellm.suppress_debug_info = True
HOST = "LiteLLM SDK"
ASKED = {"model": f"toolspeak/{MODEL}", "messages": [{"role": "user", "content": QUESTION}], "tools": [OPENAI_TOOL]}
COLD = "It is cold."
WAIT_S = 30


def whole(**more):
    return litellm.completion(**ASKED, **more)


def streamed(**more):
    return litellm.stream_chunk_builder([*litellm.completion(**ASKED, stream=True, **more)])


def async_whole(**more):
    return asyncio.run(litellm.acompletion(**ASKED, **more))


def async_streamed(**more):
    async def chunks():
        return [chunk async for chunk in await litellm.acompletion(**ASKED, stream=True, **more)]

    return litellm.stream_chunk_builder(asyncio.run(chunks()))


WAYS = {
    "sync, whole": whole,
    "sync, streamed": streamed,
    "async, whole": async_whole,
    "async, streamed": async_streamed,
}


def check(name, work):
    rows.check(HOST, ("litellm",), {f"{name}, {way}": partial(work, ask) for way, ask in WAYS.items()})


# ---------------------------------------------------------------- errors


def fails(kind, status, words, ask, **more):
    """Check what is raised; LiteLLM wraps what a stream raises in an error of its own, for its fallbacks."""
    error = raised(partial(ask, **more))
    cause = getattr(error, "original_exception", None) or error
    assert type(cause) is kind, repr(error)
    assert cause.status_code == error.status_code == status, repr(error)
    assert words in str(cause), repr(error)


async def breaks_off(asked):
    asked.head()
    await asked.chunk(b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"It is "}}]}\n\n')
    asked.reset()


FAULTS = {
    "upstream answers 429": (
        refuse(429, {"error": {"message": "slow down"}}),
        litellm.RateLimitError,
        429,
        "slow down",
    ),
    "upstream answers 500": (
        refuse(500, {"error": {"message": "no memory"}}),
        litellm.InternalServerError,
        500,
        "no memory",
    ),
    "upstream answers 401": (refuse(401, {"error": {"message": "no key"}}), litellm.AuthenticationError, 401, "no key"),
    "prompt too long": (
        refuse(400, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
        litellm.ContextWindowExceededError,
        400,
        "too long",
    ),
    "upstream breaks off": (breaks_off, litellm.BadGatewayError, 502, "broke off"),
    "no right call": (
        plain_server(lambda _: call("get_weather", town="Oslo")),
        litellm.BadGatewayError,
        502,
        "the model's tool calls cannot be used",
    ),
}


def check_faults(upstream):
    for name, (script, *expected) in FAULTS.items():
        upstream.answers(script)
        check(name, partial(fails, *expected))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nothing = f"http://127.0.0.1:{free.getsockname()[1]}/v1"  # bound, and nothing listens
        refused = partial(fails, litellm.BadGatewayError, 502, "Connection refused")
        check("connection refused", partial(refused, api_base=nothing))
    check("unknown upstream", partial(fails, litellm.InternalServerError, 500, "did you mean", api_base="olama"))
    upstream.answers(hang)
    check("timeout", partial(fails, litellm.Timeout, 408, "the read timeout", timeout=0.5))


# ---------------------------------------------------------------- answers


def check_answers(upstream):
    def several(ask):
        answer = ask(tool_choice="required", stream_options={"include_usage": True})
        calls = answer.choices[0].message.tool_calls
        assert [each.function.arguments for each in calls] == ['{"city": "Oslo"}', '{"city": "Rome"}'], answer
        assert len({each.id for each in calls}) == len(calls), answer
        assert answer.choices[0].finish_reason == "tool_calls", answer
        written = len(both("")) // 4  # the figure of the model server, and not that of a tokenizer
        assert answer.usage.completion_tokens == written, answer.usage

    def text(ask):
        answer = ask(tool_choice="none")
        assert answer.choices[0].finish_reason == "stop", answer
        assert answer.choices[0].message.content == COLD, answer
        assert not answer.choices[0].message.tool_calls, answer

    def both(_):
        return "\n".join((call("get_weather", city="Oslo"), call("get_weather", city="Rome")))

    upstream.answers(plain_server(both))
    check("several calls, and usage", several)

    def counted():
        *_, last = litellm.completion(**ASKED, stream=True)
        assert last._hidden_params["usage"].completion_tokens == len(COLD) // 4, last  # what LiteLLM logs and bills

    def routed():
        params = {"model": ASKED["model"], "api_base": upstream.url}
        router = litellm.Router([{"model_name": "ours", "litellm_params": params}])
        answer = router.completion("ours", ASKED["messages"], tools=ASKED["tools"])
        assert answer.choices[0].message.content == COLD, answer

    upstream.answers(plain_server(lambda _: COLD))
    check("no call", text)
    more = {"usage of a stream without stream_options": counted, "router": routed}
    rows.check(HOST, ("litellm",), more)


def keys(upstream):
    return {asked.headers.get("authorization") for asked in upstream.wait_for(1)}


def check_keys(upstream, other):
    def of_a_call(ask):
        upstream.answers(plain_server())
        ask(api_base=upstream.url, api_key="sk-of-the-call")
        assert keys(upstream) == {"Bearer sk-of-the-call"}

    def of_the_provider(ask):
        upstream.answers(plain_server())
        ask()
        assert keys(upstream) == {"Bearer sk-of-the-provider"}

    def elsewhere(ask):
        other.answers(plain_server())
        ask(api_base=other.url)
        assert keys(other) == {None}

    check("key of a call", of_a_call)
    register(upstream.url, key="sk-of-the-provider")
    check("key of the provider", of_the_provider)
    check("key of the provider stays with its upstream", elsewhere)


# ---------------------------------------------------------------- streams that are left


async def begins(asked):
    asked.head()
    await asked.chunk(b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"It is "}}]}\n\n')
    await hang(asked)


def check_leaving(upstream):
    plain = {name: value for name, value in ASKED.items() if name != "tools"}

    def sync():
        upstream.answers(begins)
        stream = litellm.completion(**plain, stream=True)
        next(stream)
        del stream
        gc.collect()
        assert upstream.wait_for(1)[0].hung_up.wait(WAIT_S)

    def with_await():
        async def leave():
            upstream.answers(begins)
            stream = await litellm.acompletion(**plain, stream=True)
            await anext(stream)
            del stream
            gc.collect()
            assert await asyncio.to_thread(upstream.wait_for(1)[0].hung_up.wait, WAIT_S)

        asyncio.run(leave())

    rows.check(HOST, ("litellm",), {"a stream that is left, sync": sync, "a stream that is left, async": with_await})


def register(upstream, **options):
    handler = provider(upstream, **options)
    litellm.custom_provider_map = [{"provider": "toolspeak", "custom_handler": handler}]


def main():
    with listening((MODEL,)) as upstream, listening((MODEL,)) as other:
        register(upstream.url)
        check_answers(upstream)
        check_leaving(upstream)
        check_faults(upstream)
        register("")
        check_keys(upstream, other)


main()

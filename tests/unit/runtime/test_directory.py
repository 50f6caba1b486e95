"""Which model of which upstream a name means, and how upstreams are asked for their lists."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from testkit.loopback import Got, Loopback, Out, Say, in_loop, until
from tests.unit.runtime.scene import CHAT, COLD, REQUEST, Paced, upstream, whole_of
from toolspeak.engine.plan import Way
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.verdict import Verdict
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.runtime.directory import ConfiguredUpstream, Directory, Route
from toolspeak.runtime.transport import Timeouts, TransportError
from toolspeak.runtime.upstream import list_models


@dataclass
class Shop:
    """A server that lists models; `open` holds its answers back, `broken` makes them errors."""

    models: Sequence[str] = ()
    broken: bool = False
    open: asyncio.Event = field(default_factory=asyncio.Event)
    server: Loopback = field(init=False)

    def __post_init__(self) -> None:
        self.server = Loopback(self._say)
        self.open.set()

    @property
    def looks(self) -> int:
        return sum(got.method == "GET" for got in self.server.got)

    async def _say(self, got: Got, out: Out) -> None:
        await self.open.wait()
        if got.method == "POST":
            await out.whole(200, whole_of(CHAT, COLD))
        elif self.broken:
            await out.whole(404, b"{}")
        else:
            await out.whole(200, json.dumps({"data": [{"id": name} for name in self.models]}).encode())


@asynccontextmanager
async def directory(
    shops: dict[str, Shop],
    default: str = "",
    aliases: dict[str, tuple[str, str]] | None = None,
    clock: Paced | None = None,
) -> AsyncGenerator[Directory]:
    async with AsyncExitStack() as stack:
        places = dict[str, ConfiguredUpstream]()
        for name, shop in shops.items():
            await stack.enter_async_context(shop.server)
            places[name] = ConfiguredUpstream(name, await stack.enter_async_context(upstream(shop.server)))
        routes = {
            alias: Route(place, places[place].upstream, model, alias=alias)
            for alias, (place, model) in (aliases or {}).items()
        }
        yield Directory(list(places.values()), routes, default, clock or Paced())


async def where(found: Directory, *names: str) -> list[tuple[str, str]]:
    routes = [await found.find(name) for name in names]
    return [(route.place, route.model) for route in routes]


# ---------------------------------------------------------------- names


@in_loop
async def test_an_alias_means_its_model_with_and_without_latest_and_nobody_is_asked() -> None:
    shop = Shop(["qwen"])
    async with directory({"box": shop}, aliases={"claude": ("box", "qwen")}) as found:
        assert await where(found, "claude", "claude:latest") == [("box", "qwen"), ("box", "qwen")]
        assert (await found.find("claude")).identity == "claude"
        assert (await found.find("box:claude")).identity == "box:claude"
    assert shop.looks == 0


@in_loop
async def test_a_name_may_say_its_upstream_and_nobody_is_asked() -> None:
    one, other = Shop(), Shop()
    async with directory({"groq": one, "box:8000": other}) as found:
        assert await where(found, "groq:llama", "groq/meta/llama:8b", "box:8000:qwen", "box:8000/qwen") == [
            ("groq", "llama"),
            ("groq", "meta/llama:8b"),
            ("box:8000", "qwen"),
            ("box:8000", "qwen"),
        ]
    assert one.looks + other.looks == 0


@in_loop
async def test_of_two_upstreams_that_begin_alike_the_longer_one_is_meant() -> None:
    async with directory({"box": Shop(), "box:8000": Shop()}) as found:
        assert await where(found, "box:8000:qwen", "box:8000") == [("box:8000", "qwen"), ("box", "8000")]


@in_loop
async def test_the_identity_of_a_route_leads_back_to_it() -> None:
    async with directory({"127.0.0.1:9000": Shop(["qwen"])}, aliases={"fast": ("127.0.0.1:9000", "qwen")}) as found:
        for name, identity in (("fast", "fast"), ("qwen", "127.0.0.1:9000:qwen"), ("127.0.0.1:9000/qwen",) * 2):
            route = await found.find(name)
            assert route.identity == identity.replace("/", ":")
            assert await found.find(route.identity) == route


@in_loop
async def test_a_listed_model_is_found_where_it_is_listed_and_the_first_that_lists_it_has_it() -> None:
    async with directory({"one": Shop(["a", "b"]), "two": Shop(["b", "c"])}) as found:
        assert await where(found, "a", "b", "c") == [("one", "a"), ("one", "b"), ("two", "c")]


@pytest.mark.parametrize(("listed", "asked"), [("m:latest", "m"), ("m:latest", "m:latest"), ("m", "m:latest")])
@in_loop
async def test_latest_may_be_said_or_not_and_the_upstream_gets_its_own_name(listed: str, asked: str) -> None:
    async with directory({"box": Shop(["other", listed])}) as found:
        assert await where(found, asked) == [("box", listed)]


@in_loop
async def test_another_tag_is_another_model() -> None:
    async with directory({"box": Shop(["m:7b", "m:latest"])}) as found:
        assert await where(found, "m:7b", "m") == [("box", "m:7b"), ("box", "m:latest")]


@in_loop
async def test_without_a_default_an_unknown_name_means_the_first_model_of_the_first_upstream() -> None:
    async with directory({"one": Shop(["a", "b"]), "two": Shop(["c"])}) as found:
        assert await where(found, "gpt-9", "") == [("one", "a"), ("one", "a")]


@pytest.mark.parametrize("shop", [Shop(), Shop(broken=True)])
@in_loop
async def test_where_nothing_is_listed_a_name_is_sent_as_it_is(shop: Shop) -> None:
    async with directory({"one": shop}) as found:
        assert await where(found, "gpt-9") == [("one", "gpt-9")]


@pytest.mark.parametrize(
    ("default", "meant"),
    [
        ("b", ("one", "b")),
        ("c", ("two", "c")),
        ("two:z", ("two", "z")),
        ("fast", ("two", "c")),
        ("nobody-lists-it", ("one", "nobody-lists-it")),
    ],
)
@in_loop
async def test_the_default_is_for_names_that_nobody_knows(default: str, meant: tuple[str, str]) -> None:
    aliases = {"fast": ("two", "c")}
    async with directory({"one": Shop(["a", "b"]), "two": Shop(["c"])}, default, aliases) as found:
        assert await where(found, "gpt-9", "", default, "a") == [meant, meant, meant, ("one", "a")]


@in_loop
async def test_exactly_a_model_is_that_one_or_none_other() -> None:
    shops = {"one": Shop(["a"]), "two": Shop(["b"])}
    async with directory(shops, default="a", aliases={"fast": ("two", "b")}) as found:
        routes = [await found.exactly(name) for name in ("fast", "b", "two:z", "gpt-9")]
        assert [(route.place, route.model) for route in routes] == [
            ("two", "b"),
            ("two", "b"),
            ("two", "z"),
            ("one", "gpt-9"),
        ]


@in_loop
async def test_exactly_a_model_of_the_only_upstream_needs_no_list() -> None:
    shop = Shop(["a"])
    async with directory({"one": shop}, default="a") as found:
        assert (await found.exactly("gpt-9")).model == "gpt-9"
    assert shop.looks == 0


@in_loop
async def test_all_models_are_listed_once_aliases_first() -> None:
    shops = {"one": Shop(["a", "b"]), "two": Shop(["b", "fast", "c:latest"])}
    async with directory(shops, aliases={"fast": ("one", "a")}) as found:
        listed = await found.listing()
        assert [(one.name, one.route.place, one.route.model) for one in listed] == [
            ("fast", "one", "a"),
            ("a", "one", "a"),
            ("b", "one", "b"),
            ("c:latest", "two", "c:latest"),
        ]


# ---------------------------------------------------------------- routes


@in_loop
async def test_facts_and_settings_of_an_upstream_hold_for_its_models_and_a_request_says_more() -> None:
    shop = Shop(["a"])
    async with shop.server, upstream(shop.server) as opened:
        place = ConfiguredUpstream("box", opened, ModelFacts(tools=Support.NONE), Settings(dialect="hermes", retries=0))
        route = await Directory([place]).find("a")
    plan = route.plan(REQUEST)
    assert (plan.way, plan.dialect, plan.retries) == (Way.FORCE, "hermes", 0)
    assert route.plan(REQUEST, Settings(mode=Mode.OFF)).way is Way.OFF


@in_loop
async def test_a_model_has_the_facts_of_its_family_unless_its_upstream_says_more_inl2() -> None:
    shop = Shop(["qwen3:8b", "m"])
    async with shop.server, upstream(shop.server) as opened:
        plain, said = ConfiguredUpstream("box", opened), ConfiguredUpstream("box", opened, ModelFacts(dialect="react"))
        models = [(await Directory([plain]).find(name)).facts.dialect for name in ("qwen3:8b", "m")]
        assert models == ["hermes", ""]
        assert (await Directory([said]).find("qwen3:8b")).facts.dialect == "react"


@in_loop
async def test_a_route_is_put_together_once_and_no_name_fills_the_memory_p7() -> None:
    shop = Shop(["qwen3:8b"])
    async with shop.server, upstream(shop.server) as opened:
        found = Directory([ConfiguredUpstream("box", opened)])
        assert await found.find("qwen3:8b") is await found.find("box:qwen3:8b")
        long = f"box:{'m' * 1000}"
        assert await found.find(long) is not await found.find(long)
        for number in range(5000):
            await found.find(f"box:{number}")
        assert len(found._places["box"]._routes) == 4096


HISTORY = (
    *REQUEST.messages,
    Message(Role.ASSISTANT, (Call("call_1", "get_weather", "{}"),)),
    Message(Role.TOOL, (Result("call_1", (Text("cold"),)),)),
)


@pytest.mark.parametrize(
    ("model", "id"),
    [("kimi-k2", "functions.get_weather:0"), ("mistral:7b", r"[0-9a-f]{9}"), ("m", "call_1"), ("free", "call_1")],
)
@in_loop
async def test_the_ids_of_a_history_are_those_that_the_model_s_family_wants_wire6(model: str, id: str) -> None:
    shop = Shop()
    async with shop.server, upstream(shop.server) as opened:
        place = ConfiguredUpstream("box", opened)
        free = place.route("kimi-k2", ModelFacts(said=frozenset({"quirks.ids"})))
        route = await Directory([place], {"free": free}).exactly(model)
        request = replace(REQUEST, messages=HISTORY)
        await route.take(request, route.plan(request), unheard)
    body = json.loads(shop.server.got[0].body)
    assert re.fullmatch(id, body["messages"][1]["tool_calls"][0]["id"])
    assert re.fullmatch(id, body["messages"][2]["tool_call_id"])


async def unheard(_: Sequence[Event]) -> None:
    """Leave the events."""


@in_loop
async def test_a_turn_is_sent_in_the_form_of_its_plan_whatever_is_learned_meanwhile_chk8() -> None:
    shop, request = Shop(), replace(REQUEST, choice=ToolChoice(ChoiceMode.REQUIRED))
    asked = Settings(Mode.FORCE, retries=0)
    async with shop.server, upstream(shop.server) as opened:
        route = ConfiguredUpstream("box", opened).route("m")
        before = route.plan(request, asked)
        route.learned.keep("m", Verdict(server="llamacpp", constraint=ConstraintForm.LLAMACPP), 60)
        after = route.plan(request, asked)
        await route.take(request, before, unheard)
        await route.take(request, after, unheard)
        route.learned.keep("m", Verdict(), 60)
        await route.take(request, after, unheard)
    assert tuple(plan.facts.quirks.constraint for plan in (before, after)) == (
        ConstraintForm.NONE,
        ConstraintForm.LLAMACPP,
    )
    assert ["grammar" in json.loads(got.body) for got in shop.server.got] == [False, True, True]


@in_loop
async def test_a_turn_is_taken_under_the_name_that_the_upstream_knows() -> None:
    shop = Shop(["qwen"])
    async with directory({"box": shop}, aliases={"claude": ("box", "qwen")}) as found:
        route = await found.find("claude")
        outcome = await route.take(REQUEST, route.plan(REQUEST), unheard)
    assert outcome.turn.text == COLD.text
    assert json.loads(shop.server.got[0].body)["model"] == "qwen"


# ---------------------------------------------------------------- looks


@in_loop
async def test_many_who_ask_at_once_look_once() -> None:
    shop = Shop(["a", "b"])
    shop.open.clear()
    async with directory({"box": shop}) as found:
        async with asyncio.TaskGroup() as group:
            finds = [group.create_task(found.find(name)) for name in ("b", "gpt-9", "a") * 20]
            group.create_task(found.listing())
            await until(lambda: shop.looks == 1)
            shop.open.set()
        assert [find.result().model for find in finds] == ["b", "a", "a"] * 20
    assert shop.looks == 1


@in_loop
async def test_who_gives_up_waiting_for_a_list_takes_it_from_nobody() -> None:
    shop = Shop(["a", "b"])
    shop.open.clear()
    async with directory({"box": shop}) as found:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(found.find("b"))
            await until(lambda: shop.looks == 1)
            second = group.create_task(found.find("b"))
            await asyncio.sleep(0.01)
            first.cancel()
            shop.open.set()
        assert second.result().model == "b"


@in_loop
async def test_a_list_is_fresh_for_a_minute_and_what_was_listed_needs_no_new_look() -> None:
    shop, clock = Shop(["a", "b"]), Paced()
    async with directory({"box": shop}, clock=clock) as found:
        await found.find("b")
        clock.now += 59.9
        shop.models = ["c"]
        assert await where(found, "c") == [("box", "a")]
        assert shop.looks == 1
        clock.now += 0.2
        assert await where(found, "b") == [("box", "b")]
        assert shop.looks == 1
        assert await where(found, "c", "b") == [("box", "c"), ("box", "c")]
        assert shop.looks == 2


@in_loop
async def test_a_failed_look_keeps_what_was_known_and_is_kept_for_ten_seconds() -> None:
    shop, clock = Shop(["a", "b"]), Paced()
    async with directory({"box": shop}, clock=clock) as found:
        await found.find("b")
        clock.now += 60
        shop.broken = True
        assert await where(found, "c", "b") == [("box", "a"), ("box", "b")]
        assert shop.looks == 2
        clock.now += 9.9
        await found.find("c")
        assert shop.looks == 2
        shop.broken, shop.models = False, ["c"]
        clock.now += 0.2
        assert await where(found, "c") == [("box", "c")]
        assert shop.looks == 3


@in_loop
async def test_an_upstream_that_does_not_answer_holds_up_nobody_who_was_found_elsewhere() -> None:
    shops = {"one": Shop(["a"]), "two": Shop(["b"])}
    shops["two"].open.clear()
    async with directory(shops) as found:
        async with asyncio.timeout(2):
            assert await where(found, "a") == [("one", "a")]
        shops["two"].open.set()
        assert await where(found, "b") == [("two", "b")]


@in_loop
async def test_a_list_is_not_waited_for_as_long_as_for_a_model() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.gone()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolspeak.runtime.replica_client._SOON", 0.1)
        async with Loopback(say) as server, upstream(server, timeouts=Timeouts(first_byte=300)) as opened:
            with pytest.raises(TransportError, match=r"timeouts\.first_byte = 0\.1 s"):
                await list_models(opened)


# ---------------------------------------------------------------- forms of lists


def listing(body: object, status: int = 200) -> Say:
    async def say(_: Got, out: Out) -> None:
        await out.whole(status, json.dumps(body).encode())

    return say


OPENAI = {"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b", "name": "B"}]}
ANTHROPIC = {"data": [{"type": "model", "id": "a", "display_name": "A"}, {"type": "model", "id": "b"}]}
GEMINI = {
    "models": [
        {"name": "models/embedding-1", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/a", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/b"},
    ]
}
OLLAMA = {"models": [{"name": "a:latest", "model": "a:latest"}, {"name": "b:7b", "details": None}]}
LLAMACPP = {"models": [{"name": "x.gguf"}], "object": "list", "data": [{"id": "a", "owned_by": "llamacpp"}]}
TOGETHER = [{"id": "x", "type": "image"}, {"id": "a", "type": "chat"}, {"id": "b", "type": "language"}]
LMSTUDIO = {"data": [{"id": "x", "type": "embeddings"}, {"id": "a", "type": "llm"}]}


@pytest.mark.parametrize(
    ("wire", "target", "body", "names"),
    [
        (CHAT, "/v1/models", OPENAI, ["a", "b"]),
        (CHAT, "/v1/models", LLAMACPP, ["a"]),
        (CHAT, "/v1/models", TOGETHER, ["a", "b"]),
        (CHAT, "/v1/models", LMSTUDIO, ["a"]),
        (CHAT, "/v1/models", {"data": None}, []),
        (CHAT, "/v1/models", {"data": [{"id": None, "name": "a"}, {"id": ""}, {}]}, ["a"]),
        (CHAT, "/v1/models", {}, []),
        ("openai_responses", "/v1/models", OPENAI, ["a", "b"]),
        ("anthropic", "/v1/models?limit=1000", ANTHROPIC, ["a", "b"]),
        ("gemini", "/v1/models?pageSize=1000", GEMINI, ["a", "b"]),
        ("ollama", "/v1/api/tags", OLLAMA, ["a:latest", "b:7b"]),
        ("ollama", "/v1/api/tags", {"models": None}, []),
    ],
)
@in_loop
async def test_every_wire_lists_its_models(wire: str, target: str, body: object, names: list[str]) -> None:
    async with Loopback(listing(body)) as server, upstream(server, wire) as opened:
        assert await list_models(opened) == names
    assert (server.got[0].method, server.got[0].target) == ("GET", target)
    assert server.got[0].headers["authorization"] == "Bearer canary-7f3a"
    assert "content-length" not in server.got[0].headers


@pytest.mark.parametrize("body", ["no", 7, {"data": "no"}, {"data": [7]}, [7], {"data": [{"id": 7}]}])
@in_loop
async def test_a_list_of_another_form_is_no_list(body: object) -> None:
    async with Loopback(listing(body)) as server, upstream(server) as opened:
        with pytest.raises(TransportError, match="the upstream's list of models cannot be read: "):
            await list_models(opened)


@in_loop
async def test_a_refused_list_says_why_without_the_key_safe6() -> None:
    async with Loopback(listing({"error": "canary-7f3a is wrong"}, 401)) as server, upstream(server) as opened:
        with pytest.raises(TransportError) as caught:
            await list_models(opened)
    assert (str(caught.value), caught.value.failure.status) == ("[redacted] is wrong", 401)

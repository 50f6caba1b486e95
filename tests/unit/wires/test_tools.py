"""Tools of a request: read once from the same bytes within a limit (P7), one of each name, found by name."""

from collections.abc import Callable

import pytest

from toolspeak import wires
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Role, Text, Vendor
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Grammar, Tool, ToolChoice, ToolKind
from toolspeak.text.schema import compile_schema
from toolspeak.toolset.memo import LARGEST, MOST
from toolspeak.wires.shared.json_body import dump_text
from toolspeak.wires.shared.tools import ToolIndex, cache_tools, free_form_parameters, unique_tools

ToolsAndHosted = tuple[tuple[Tool, ...], tuple[JsonObject, ...]]


def counted() -> tuple[Callable[[bytes], ToolsAndHosted], list[bytes]]:
    """Return a cached reader, and what was really read."""
    seen: list[bytes] = []

    def read(raw: bytes) -> ToolsAndHosted:
        seen.append(raw)
        return (Tool(str(len(raw))),), ()

    return cache_tools(read), seen


def test_the_same_bytes_are_read_once() -> None:
    read, seen = counted()
    assert read(b"[1]") is read(b"[1]")
    assert read(b"[22]") == ((Tool("4"),), ())
    assert seen == [b"[1]", b"[22]"]


@pytest.mark.parametrize(("over", "reads"), [(-1, 1), (0, 1), (1, 2)])
def test_a_tool_set_is_remembered_up_to_its_limit_p7(over: int, reads: int) -> None:
    read, seen = counted()
    raw = b"x" * (LARGEST + over)
    assert read(raw) == read(raw)
    assert len(seen) == reads


@pytest.mark.parametrize(("over", "reads"), [(-1, 1), (0, 1), (1, 2)])
def test_so_many_tool_sets_are_remembered_p7(over: int, reads: int) -> None:
    read, seen = counted()
    for number in range(MOST + over):
        read(b"%d" % number)
    read(b"0")
    assert seen.count(b"0") == reads


def test_what_cannot_be_read_is_not_remembered() -> None:
    def read(raw: bytes) -> ToolsAndHosted:
        raise ValueError(raw)

    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            cache_tools(read)(b"x")


def test_of_two_tools_of_one_name_the_last_stays_in_the_place_of_the_first() -> None:
    assert unique_tools([Tool("a", "1"), Tool("b"), Tool("a", "2")]) == (Tool("a", "2"), Tool("b"))
    assert unique_tools([]) == ()


@pytest.mark.parametrize("grammar", [None, Grammar("lark", 'start: "a"')])
def test_a_model_sees_a_custom_tool_as_one_text(grammar: Grammar | None) -> None:
    schema = compile_schema(free_form_parameters(grammar))
    assert schema.accepts({"input": "x"})
    assert not schema.accepts({})
    assert not schema.accepts({"input": 5})
    assert not schema.accepts({"input": "x", "more": 1})


def test_a_model_is_told_the_grammar() -> None:
    said = dump_text(free_form_parameters(Grammar("lark", "start: a")))
    assert r"matches this lark grammar:\nstart: a" in said


BOX = ToolIndex([Tool("f"), Tool("patch", kind=ToolKind.CUSTOM), Tool("ns__g", namespace="ns", local_name="g")])


def test_a_tool_has_a_kind_and_one_that_nobody_knows_is_a_function() -> None:
    assert [BOX.kind(name) for name in ("f", "patch", "nobody")] == [
        ToolKind.FUNCTION,
        ToolKind.CUSTOM,
        ToolKind.FUNCTION,
    ]


def test_a_client_knows_a_tool_by_its_namespace() -> None:
    assert [BOX.split(name) for name in ("f", "ns__g", "nobody")] == [("", "f"), ("ns", "g"), ("", "nobody")]


WRITTEN = (
    Tool("read", "Read a file.\u2028"),
    Tool("a name that is an alias", "half \ud83d", {"type": "object", "properties": {"x": {"type": "string"}}}),
    Tool("later", "Found by a search.", deferred=True),
    Tool("own", "With a field.", vendor=Vendor("anthropic", {"cache_control": {"type": "ephemeral"}})),
)


@pytest.mark.parametrize("name", wires.names())
@pytest.mark.parametrize("deferred", [True, False])
def test_tools_that_were_written_before_are_written_the_same(name: str, deferred: bool) -> None:
    wire, offered = wires.load(name), [tool for tool in WRITTEN if deferred or not tool.deferred]
    own: list[dict[str, JsonObject]] = [{}, {name: {}}, {name: {"tools": [{"type": "web_search"}]}}]

    def written(tools: tuple[Tool, ...], extra: dict[str, JsonObject], *allowed: str) -> bytes:
        said = (Message(Role.USER, (Text("Hello"),)),)
        request = Request("m", said, tools, ToolChoice(allowed=allowed), extra=extra)
        return wire.encode_request(request, Quirks()).body

    known = (*offered,)
    for extra in [*own, *own]:
        for allowed in ((), ("read",), ("read", "own")):
            assert written(known, extra, *allowed) == written((*offered,), extra, *allowed)

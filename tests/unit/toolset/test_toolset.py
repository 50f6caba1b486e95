"""Tool sets: names and arguments of calls, as real models get them wrong (CHK-2, CHK-3), and limits (P7)."""

from collections.abc import Callable

import pytest

from testkit.timing import BAR, growth
from toolspeak.errors import BadRequest, BadSchema, UnknownName
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import LONGEST_NAME, MOST_TOOLS, Fitted, ToolSet, compile_tools


def an_object(required: str = "", **properties: Json) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list[Json](required.split())}


STRING: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}
STRINGS: JsonObject = {"type": "array", "items": STRING}
UNIT: JsonObject = {"type": "string", "enum": ["celsius", "fahrenheit"]}
EDIT = an_object("oldText newText", oldText=STRING, newText=STRING)
NODE: JsonObject = {"type": "object", "properties": {"child": {"$ref": "#/$defs/N"}}}
TOOLS = [
    Tool("get_time", parameters=an_object()),
    Tool("search", parameters=an_object("queries", queries=STRINGS)),
    Tool("edit", parameters=an_object("path edits", path=STRING, edits={"type": "array", "items": EDIT})),
    Tool("read_file", parameters=an_object("path", path=STRING, offset=INTEGER, limit=INTEGER)),
    Tool("http_get", parameters=an_object("url", url=STRING, headers={"type": "object"})),
    Tool("post_comment", parameters=an_object("comment", comment=STRING)),
    Tool("setv", parameters=an_object("v", v={"anyOf": [STRING, STRINGS]})),
    Tool("turn_off", parameters=an_object("domain", domain=STRINGS)),
    Tool("get_row", parameters=an_object("id", id=INTEGER)),
    Tool("write_file", parameters=an_object("path content", path=STRING, content=STRING)),
    Tool("get_weather", parameters=an_object("city", city=STRING, unit=UNIT)),
    Tool("lookup_zip", parameters=an_object("zip", zip=STRING, days=INTEGER)),
    Tool("run", parameters=an_object("command", command=STRING, timeout=INTEGER, bg={"type": "boolean"})),
    Tool("web_search", parameters=an_object("query", query=STRING, max_results={"type": "number"}, domains=STRINGS)),
    Tool("tree", parameters={**an_object("root", root={"$ref": "#/$defs/N"}), "$defs": {"N": NODE}}),
]
SET = compile_tools(TOOLS)


# The failure corpus: what must come of it


@pytest.mark.parametrize(
    ("case", "name", "value", "expected"),
    [
        ("nd-016", "get_time", "", {}),
        ("at-001", "search", {"queries": '["test"]'}, {"queries": ["test"]}),
        (
            "at-002",
            "edit",
            {"path": "f.txt", "edits": ['{"oldText":"a","newText":"b"}']},
            {"path": "f.txt", "edits": [{"oldText": "a", "newText": "b"}]},
        ),
        (
            "at-003",
            "read_file",
            {"path": "c.pdf", "offset": "4", "limit": "12"},
            {"path": "c.pdf", "offset": 4, "limit": 12},
        ),
        (
            "at-004",
            "http_get",
            {"url": "https://example.org", "headers": '{"User-Agent": "x"}'},
            {"url": "https://example.org", "headers": {"User-Agent": "x"}},
        ),
        ("at-014", "get_time", None, {}),
        ("at-018", "get_weather", {"city": "Oslo", "unit": None}, {"city": "Oslo"}),
        ("mj-015", "get_weather", '{"city": "Oslo"}', {"city": "Oslo"}),
        ("M9", "get_weather", {"arguments": {"city": "Oslo"}}, {"city": "Oslo"}),
        ("M14", "get_weather", {"city": "Oslo", "unit": "Celsius"}, {"city": "Oslo", "unit": "celsius"}),
    ],
)
def test_arguments_are_fitted_and_every_fix_is_recorded_chk_3(
    case: str, name: str, value: Json, expected: JsonObject
) -> None:
    fitted = SET.fit(name, value)
    assert (fitted.arguments, fitted.problems) == (expected, ()), case
    assert fitted.fixes, case


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [
        ("at-005", "post_comment", {"comment": '[review]: {"ok": true}\nInitiator: [~id:7]'}),
        ("at-006", "lookup_zip", {"zip": "00120"}),
        ("at-009", "setv", {"v": "[1, 2]"}),
        ("at-011", "get_row", {"id": 12345678901234567890}),
        ("at-013", "get_time", {}),
        ("hg-015", "tree", {"root": {"child": {"child": {}}}}),
    ],
)
def test_good_arguments_stay_as_they_are_chk_3(case: str, name: str, value: JsonObject) -> None:
    fitted = SET.fit(name, value)
    assert fitted == Fitted(value), case
    assert fitted.arguments is value, case


@pytest.mark.parametrize(
    ("case", "name", "value", "message"),
    [
        ("at-010", "turn_off", {"domain": "light"}, '/domain is "light", but must be array'),
        ("at-012", "write_file", {"path": "x.txt"}, "/content is missing, but must be string"),
        ("at-013", "get_weather", None, "/city is missing, but must be string"),
        ("hg-015", "tree", {"root": {"child": {"child": 1}}}, "/root/child/child is 1, but must be object"),
        ("M14", "get_weather", {"city": "Oslo", "unit": "kelvin"}, '/unit is "kelvin", but must be one of "celsius"'),
        ("", "get_time", [], "the value is not an object"),
        ("", "get_time", "now", "the value is not an object"),
    ],
)
def test_bad_arguments_are_told_chk_3(case: str, name: str, value: Json, message: str) -> None:
    (problem,) = SET.fit(name, value).problems
    assert problem.message.startswith(message), case


def test_at_010_a_scalar_is_wrapped_only_if_asked() -> None:
    assert SET.fit("turn_off", {"domain": "light"}, wrap_scalars=True).arguments == {"domain": ["light"]}


def test_a_whole_float_becomes_an_integer_where_one_is_wanted() -> None:
    fitted = SET.fit("read_file", {"path": "a", "offset": 3.0})
    assert repr(fitted.arguments) == "{'path': 'a', 'offset': 3}"
    assert fitted.fixes == (Fix("float to integer", "/offset"),)
    assert (
        repr(SET.fit("web_search", {"query": "a", "max_results": 3.0}).arguments)
        == "{'query': 'a', 'max_results': 3.0}"
    )


@pytest.mark.parametrize(
    ("case", "name", "parameter", "raw", "expected"),
    [
        ("at-006", "lookup_zip", "zip", "00120", "00120"),
        ("nm-014", "lookup_zip", "zip", "10001", "10001"),
        ("nm-014", "lookup_zip", "days", "3", 3),
        ("at-007", "run", "command", "sleep 1", "sleep 1"),
        ("at-007", "run", "timeout", "30", 30),
        ("at-007", "run", "bg", "True", True),
        ("at-008", "web_search", "max_results", "10", 10),
        ("at-008", "web_search", "domains", "[]", []),
        ("at-017", "read_file", "offset", "675", 675),
        ("", "run", "unknown", "[1]", [1]),
        ("", "tree", "root", '{"child": {}}', {"child": {}}),
    ],
)
def test_text_is_typed_by_the_schema(case: str, name: str, parameter: str, raw: str, expected: Json) -> None:
    assert repr(SET.typed(name, parameter, raw).value) == repr(expected), case


def test_fixes_of_typed_text_say_which_parameter() -> None:
    fixes = SET.typed("get_weather", "unit", "CELSIUS").fixes
    assert fixes == (Fix("enum case", "/unit"),)


@pytest.mark.parametrize(
    ("name", "parameter", "expected"),
    [("run", "command", True), ("run", "timeout", False), ("setv", "v", True), ("run", "unknown", True)],
)
def test_it_knows_where_text_is_welcome(name: str, parameter: str, expected: bool) -> None:
    assert SET.takes_text(name, parameter) == expected


def test_names_are_found_chk_2() -> None:
    assert SET.find("functions.ReadFile").tool == "read_file"
    assert SET.find("delete_file").problem == Problem.UNKNOWN_TOOL
    assert SET.find("run:0", counters=True).tool == "run"


def test_a_lost_name_is_inferred_from_what_only_one_tool_takes() -> None:
    assert SET.accepting(["command", "timeout"]) == ("run",)
    assert SET.accepting(["timeout"]) == ()
    assert SET.accepting(["command", "colour"]) == ()
    assert SET.accepting(["path"]) == ("read_file",)
    assert SET.accepting(iter([])) == ("get_time",)


# What it knows


def test_it_tells_names_parameters_and_schemas() -> None:
    assert SET.names[:2] == ("get_time", "search")
    assert SET.ordered("read_file") == ("path", "offset", "limit")
    assert SET.properties("read_file") == {"path", "offset", "limit"}
    assert SET.required("read_file") == {"path"}
    assert SET.schema_of("read_file", "offset") == INTEGER
    assert SET.schema_of("read_file", "other") == {}
    assert SET.tool("run") is TOOLS[12]
    assert SET.root_of("get_time") == an_object()
    assert SET.notes("run") == ()


def test_it_knows_parameters_of_references_and_alternatives() -> None:
    base: JsonObject = {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}
    either: list[Json] = [an_object(b=INTEGER), an_object(b=STRING, c=STRING)]
    schema: JsonObject = {"allOf": [{"$ref": "#/$defs/base"}, {"anyOf": either}], "$defs": {"base": base}}
    tools = compile_tools([Tool("f", parameters={**schema, "additionalProperties": {"type": "boolean"}})])
    assert tools.properties("f") == {"a", "b", "c"}
    assert tools.required("f") == {"a"}
    assert [tools.typed("f", key, "4").value for key in "abc"] == [4, "4", "4"]
    assert tools.typed("f", "other", "true").value is True
    assert tools.fit("f", {"a": "1", "b": "2"}).arguments == {"a": 1, "b": "2"}


def test_an_empty_set_is_false() -> None:
    assert not ToolSet()
    assert not ToolSet.of([])
    assert SET
    assert len(SET) == len(TOOLS)


@pytest.mark.parametrize("ask", [SET.tool, SET.properties, SET.required, SET.ordered, SET.notes, SET.root_of])
def test_an_unknown_name_is_an_error_of_the_caller(ask: Callable[[str], object]) -> None:
    with pytest.raises(UnknownName, match="'nothing' is not one of get_time"):
        ask("nothing")


def test_what_a_schema_cannot_use_is_noted() -> None:
    tools = compile_tools([Tool("f", parameters=an_object(a={"type": "string", "pattern": "(?=x)"}))])
    assert tools.fit("f", {"a": "y"}) == Fitted({"a": "y"})
    assert "pattern" in tools.notes("f")[0]


def test_a_tool_without_a_schema_takes_any_object() -> None:
    tools = compile_tools([Tool("f")])
    assert tools.fit("f", {"a": 1}) == Fitted({"a": 1})
    assert tools.fit("f", [1]).problems
    assert tools.typed("f", "a", "text").value == "text"


# What is refused


@pytest.mark.parametrize(
    "name", ["a", "mcp__fs__read", "a.b-c", "ns:tool", "ns/tool", "获取天气", "tool@2", "x" * LONGEST_NAME]
)
def test_these_are_names(name: str) -> None:
    assert compile_tools([Tool(name)]).names == (name,)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a\n",
        "a\u00a0b",
        'a"',
        "a'",
        "`a`",
        "<a>",
        "[a]",
        "{a}",
        "a\u200bb",
        "a\ud800",
        "x" * (LONGEST_NAME + 1),
    ],
)
def test_these_are_not(name: str) -> None:
    with pytest.raises(BadRequest, match=r"tools\[1\].name .* is not accepted"):
        compile_tools([Tool("a"), Tool(name)])


def test_a_name_is_there_once() -> None:
    with pytest.raises(BadRequest, match=r"tools\[1\].name 'a' is there twice"):
        compile_tools([Tool("a"), Tool("a")])


def test_so_many_tools_are_accepted_p7() -> None:
    tools = [Tool(f"t{index}") for index in range(MOST_TOOLS + 1)]
    assert len(compile_tools(tools[: MOST_TOOLS - 1])) == MOST_TOOLS - 1
    assert len(compile_tools(tools[:MOST_TOOLS])) == MOST_TOOLS
    with pytest.raises(BadRequest, match="tools has 513 entries, at most 512 are accepted"):
        compile_tools(tools)


def test_a_bad_schema_is_refused_at_once_and_by_name() -> None:
    deep: JsonObject = {}
    for _ in range(40):
        deep = {"not": deep}
    with pytest.raises(BadSchema, match=r"tools\[1\].parameters of 'bad': the schema is nested"):
        compile_tools([Tool("good"), Tool("bad", parameters=deep)])
    with pytest.raises(BadSchema, match="the type is array, object is accepted"):
        compile_tools([Tool("bad", parameters={"type": "array"})])


def test_a_schema_that_is_no_json_is_refused_by_the_cache_too() -> None:
    endless: JsonObject = {}
    endless["a"] = endless
    with pytest.raises(BadSchema):
        ToolSet.of([Tool("f", parameters=endless)])


# The cache


def test_the_same_tools_are_compiled_once() -> None:
    assert ToolSet.of(TOOLS) is ToolSet.of([Tool(one.name, one.description, dict(one.parameters)) for one in TOOLS])
    assert ToolSet.of(TOOLS) is not ToolSet.of(TOOLS[1:])


def test_a_list_that_has_grown_is_compiled_anew() -> None:
    tools = [Tool("a")]
    assert ToolSet.of(tools).names == ("a",)
    tools.append(Tool("b"))
    assert ToolSet.of(tools).names == ("a", "b"), "a cache by the identity of a list would return the first set"


def test_large_sets_are_not_kept_p7() -> None:
    def is_kept(size: int) -> bool:
        tools = [Tool("t", "x" * (size - len("t{}")))]
        return ToolSet.of(tools) is ToolSet.of(tools)

    limit = 256 * 1024
    assert [is_kept(limit - 1), is_kept(limit), is_kept(limit + 1)] == [True, True, False]


def test_only_called_tools_are_compiled() -> None:
    tools = compile_tools(TOOLS)
    tools.fit("run", {"command": "x"})
    ready = [entry.tool.name for entry in tools._entries.values() if entry.validator._compiled]
    assert ready == ["run"]


def test_the_schema_of_an_object_is_not_read_before_a_call() -> None:
    tools = compile_tools([Tool("one", parameters={"type": "object", "properties": {"a": {"type": "string"}}})])
    (entry,) = tools._entries.values()
    assert "schema" not in vars(entry.validator), "most tools are never called"


@pytest.mark.parametrize(
    "item", [{"oldText": "some words", "newText": "other words"}, '{"oldText": "some words", "newText": "other words"}']
)
def test_fitting_is_linear_p8(item: Json) -> None:
    def value(size: int) -> Json:
        return {"path": "x", "edits": [item] * (size // 50)}

    assert SET.fit("edit", value(100_000)).problems == ()
    assert growth(lambda value: SET.fit("edit", value), value(100_000), value(200_000)) < BAR

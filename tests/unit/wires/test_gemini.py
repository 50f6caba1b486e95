"""What clients of Gemini send, and that it goes on as it came."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import pytest

from testkit.wire_requests import REQUESTS
from toolspeak.errors import BadField
from toolspeak.ir.message import Call, Message, Role, Vendor
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.wires import EncodedRequest, load

WIRE = load("gemini")
Body = dict[str, Any]
GOLDEN: list[Body] = [row for row in map(json.loads, REQUESTS.read_text().splitlines()) if row["wire"] == "gemini"]
PATH = "/v1beta/models/m:generateContent"
PNG = {"mimeType": "image/png", "data": "iVBORw0KGgoAAA"}
NO_PARAMETERS: Body = {"type": "object", "properties": {}}


def decode(path_: str = PATH, **body: object) -> Request:
    return WIRE.decode_request(json.dumps(body).encode(), path_)


def send(request: Request) -> EncodedRequest:
    return WIRE.encode_request(request, QUIRKS)


def encode(request: Request) -> Body:
    return json.loads(send(request).body)


def again(**body: object) -> Body:
    return encode(decode(PATH, **body))


def call(name: str = "f", id: str = "", **args: object) -> Body:
    return {"functionCall": {"name": name, "args": args} | ({"id": id} if id else {})}


def answer(response: Body, name: str = "f", id: str = "", **more: object) -> Body:
    return {"functionResponse": {"name": name, "response": response, **more} | ({"id": id} if id else {})}


# ---------------------------------------------------------------- what real clients send


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def spelled(value: Body) -> Body:
    return {camel(key): item for key, item in value.items() if item is not None}


class Meaning:
    """Brings a body to the one form that all bodies of its meaning have."""

    def __init__(self) -> None:
        self.calls = 0
        self.open: list[tuple[int, str, str]] = []

    def body(self, body: Body) -> Body:
        plain = spelled(body)
        plain["contents"] = self.contents(plain["contents"])
        plain["tools"] = self.tools(plain.get("tools") or [])
        plain["toolConfig"] = self.choice(plain.get("toolConfig"))
        config = spelled(plain.get("generationConfig") or {})
        plain["generationConfig"] = {key: item for key, item in config.items() if key != "candidateCount"}
        return {key: item for key, item in plain.items() if item or key == "safetySettings"}

    def tools(self, tools: list[Body] | Body) -> list[Body]:
        listed = [spelled(tool) for tool in ([tools] if isinstance(tools, dict) else tools)]
        return [self.function(spelled(one)) for tool in listed for one in tool["functionDeclarations"]]

    def function(self, one: Body) -> Body:
        schema = one.pop("parametersJsonSchema", None) or self.lowered(one.pop("parameters", None) or NO_PARAMETERS)
        return {**one, "schema": schema}

    def lowered(self, schema: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(schema, list):
            return [self.lowered(item) for item in cast("list[Any]", schema)]
        if not isinstance(schema, dict):
            return schema
        plain: Body = {key: self.lowered(item) for key, item in cast("Body", schema).items()}
        return plain | ({"type": plain["type"].lower()} if isinstance(plain.get("type"), str) else {})

    def choice(self, config: Body | None) -> Body:
        calling = dict((config or {}).get("functionCallingConfig") or {})
        return {} if calling == {"mode": "AUTO"} else calling

    def contents(self, contents: list[Body]) -> list[Body]:
        merged: list[Body] = []
        for content in contents:
            role, parts = content.get("role") or "user", [self.part(spelled(part)) for part in content["parts"]]
            if merged and merged[-1]["role"] == role:
                merged[-1]["parts"] += parts
            else:
                merged.append({"role": role, "parts": parts})
        return merged

    def part(self, part: Body) -> Body:
        if "functionCall" in part:
            called = dict(part["functionCall"])
            self.calls += 1
            self.open.append((self.calls, called.pop("id", ""), called["name"]))
            return {**part, "functionCall": {**called, "number": self.calls}}
        if "functionResponse" in part:
            said = dict(part["functionResponse"])
            number = self.paired(said.pop("id", ""), said.pop("name"))
            return {"functionResponse": {key: item for key, item in said.items() if item != []}, "number": number}
        return part

    def paired(self, id_: str, name: str) -> int:
        by_id = [waiting for waiting in self.open if id_ and waiting[1] == id_]
        by_name = [waiting for waiting in self.open if waiting[2] == name]
        found = (by_id or by_name or self.open)[0]
        self.open.remove(found)
        return found[0]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["id"])
def test_what_a_real_client_sends_means_the_same_when_it_goes_on(row: Body) -> None:
    request = WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"])
    sent = send(request)
    assert Meaning().body(json.loads(sent.body)) == Meaning().body(row["body"])
    assert row["path"].endswith("/" + sent.path)
    assert sent.dropped == ()
    assert WIRE.name in request.extra


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["id"])
def test_what_went_on_reads_as_what_came(row: Body) -> None:
    sent = send(WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"]))
    assert send(WIRE.decode_request(sent.body, "/v1beta/" + sent.path)) == sent


# ---------------------------------------------------------------- the path


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini-3-pro", False),
        ("/v1/models/m:streamGenerateContent?alt=sse", "m", True),
        ("/models/m:streamGenerateContent?key=secret&alt=sse", "m", True),
        ("/v1/v1beta/models/m:streamGenerateContent?%24alt=json;&$alt=sse", "m", True),
        ("/v1beta/models/google%2Fgemma%203%C3%A9:generateContent", "google/gemma 3é", False),
        ("/v1beta/models/google/gemma:generateContent", "google/gemma", False),
        ("/v1beta/models/llama3:8b:streamGenerateContent?alt=sse", "llama3:8b", True),
        ("/v1beta/tunedModels/mine:generateContent", "tunedModels/mine", False),
        ("models/m:generateContent", "m", False),
        ("/v1beta/models/m%3AstreamGenerateContent?alt=sse", "m", True),
        ("/v1beta/models/m", "m", False),
        ("/nowhere", "", False),
        ("", "", False),
    ],
)
def test_the_path_says_the_model_and_whether_to_stream(path: str, model: str, stream: bool) -> None:
    request = decode(path, contents=[])
    assert (request.model, request.stream, request.extra) == (model, stream, {"gemini": {}})


def test_without_a_word_for_events_a_stream_is_an_array() -> None:
    request = decode("/v1beta/models/m:streamGenerateContent", contents=[])
    assert request.extra == {"gemini": {"alt": "json"}}
    assert send(request).path == "models/m:streamGenerateContent?alt=sse"
    assert "alt" not in encode(request)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("m", "models/m:generateContent"),
        ("models/m", "models/m:generateContent"),
        ("tunedModels/a b", "tunedModels/a%20b:generateContent"),
        ("google/gemma:é", "models/google%2Fgemma%3A%C3%A9:generateContent"),
    ],
)
def test_a_model_is_written_so_that_the_path_stays_one(model: str, path: str) -> None:
    assert send(Request(model, ())).path == path
    assert decode("/v1/" + path).model == model.removeprefix("models/")


def test_a_model_in_the_body_counts_where_the_path_has_none() -> None:
    assert decode("/v1beta/x", model="models/m").model == "m"
    assert decode(PATH, model="models/other").model == "m"


# ---------------------------------------------------------------- tools


def function(**fields: object) -> Tool:
    (tool,) = decode(tools=[{"functionDeclarations": [{"name": "f", **fields}]}]).tools
    return tool


def test_a_function_has_its_name_description_and_schema() -> None:
    schema: Body = {"type": "object", "properties": {"a": {"type": "STRING"}}}
    assert function(description="d", parametersJsonSchema=schema) == Tool("f", "d", schema)
    assert function(description="d", parameters_json_schema=schema) == Tool("f", "d", schema)


def test_a_function_without_parameters_takes_none() -> None:
    assert function().parameters == NO_PARAMETERS


def test_schemas_in_the_vendors_own_form_become_json_schema() -> None:
    parameters = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "enum": ["A", "B"], "nullable": True, "format": "enum"},
            "n": {"type": "ARRAY", "minItems": "1", "items": {"type": "INTEGER", "nullable": False}},
            "either": {"anyOf": [{"type": "NUMBER"}, {"type": "BOOLEAN"}], "nullable": True},
            "any": {"type": "TYPE_UNSPECIFIED"},
            "several": {"type": ["STRING", "NULL"], "default": {"type": "STRING"}},
        },
        "required": ["type"],
        "propertyOrdering": ["type"],
    }
    schema = function(parameters=parameters).parameters
    assert schema == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["A", "B", None], "format": "enum"},
            "n": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
            "either": {"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "null"}]},
            "any": {},
            "several": {"type": ["string", "null"], "default": {"type": "STRING"}},
        },
        "required": ["type"],
        "propertyOrdering": ["type"],
    }


def test_a_schema_may_be_as_deep_as_json_may_be() -> None:
    schema: Body = {"type": "STRING"}
    for _ in range(150):
        schema = {"type": "ARRAY", "items": schema}
    deep = json.dumps(function(parameters=schema).parameters)
    assert "STRING" not in deep
    assert "ARRAY" not in deep


def test_declarations_may_be_spread_and_tools_may_be_one_object() -> None:
    one: Body = {"functionDeclarations": [{"name": "f"}]}
    two = {"function_declarations": {"name": "g"}}
    assert [tool.name for tool in decode(tools=[one, two, {}]).tools] == ["f", "g"]
    assert [tool.name for tool in decode(tools=one).tools] == ["f"]
    assert again(tools=[one, two])["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "parametersJsonSchema": NO_PARAMETERS},
                {"name": "g", "parametersJsonSchema": NO_PARAMETERS},
            ]
        }
    ]


def test_tools_that_only_the_vendor_runs_come_back_on_the_same_wire_only() -> None:
    tools: list[Body] = [{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}], "url_context": {"x": 1}}]
    request = decode(tools=tools)
    assert [tool.name for tool in request.tools] == ["f"]
    assert encode(request)["tools"][1:] == [{"googleSearch": {}}, {"urlContext": {"x": 1}}]
    other = load("openai_chat").encode_request(request, QUIRKS)
    assert b"googleSearch" not in other.body
    assert "gemini: tools" in other.dropped


def test_fields_of_a_function_that_only_the_vendor_knows_come_back() -> None:
    more = {"behavior": "BLOCKING", "responseJsonSchema": {"type": "string"}}
    body = again(tools=[{"functionDeclarations": [{"name": "f", **more}]}])
    assert body["tools"][0]["functionDeclarations"] == [{"name": "f", "parametersJsonSchema": NO_PARAMETERS, **more}]


NONE: list[object] = [[], None, {}]


@pytest.mark.parametrize("tools", NONE)
def test_no_tools_are_no_tools(tools: object) -> None:
    request = decode(tools=tools, toolConfig={"functionCallingConfig": {"mode": "ANY"}})
    assert request.tools == ()
    assert "toolConfig" not in encode(request)


def test_custom_and_badly_named_tools_of_other_wires_are_functions_here() -> None:
    parameters: Body = {"type": "object", "properties": {"input": {"type": "string"}}}
    patch = Tool("mcp.files:patch", "d", parameters, vendor=Vendor("openai_chat", {"type": "custom"}))
    used = Message(Role.ASSISTANT, (Call("c1", "mcp.files:patch", '{"input":"x"}'),))
    body = encode(Request("m", (used,), (patch,)))
    (declared,) = body["tools"][0]["functionDeclarations"]
    assert declared["name"].startswith("mcp_files_patch_")
    assert declared["parametersJsonSchema"] == parameters
    assert body["contents"][0]["parts"][0]["functionCall"] == {
        "id": "c1",
        "name": declared["name"],
        "args": {"input": "x"},
    }
    assert body["contents"][1]["parts"][0]["functionResponse"]["name"] == declared["name"]


CHOICES: dict[str, tuple[Body, ToolChoice]] = {
    "auto": ({"mode": "AUTO"}, ToolChoice()),
    "unspecified": ({"mode": "MODE_UNSPECIFIED"}, ToolChoice()),
    "nothing": ({}, ToolChoice()),
    "any": ({"mode": "ANY"}, ToolChoice(ChoiceMode.REQUIRED)),
    "lower": ({"mode": "any"}, ToolChoice(ChoiceMode.REQUIRED)),
    "one": ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ToolChoice(ChoiceMode.NAMED, "f")),
    "several": (
        {"mode": "ANY", "allowed_function_names": ["f", "g"]},
        ToolChoice(ChoiceMode.REQUIRED, allowed=("f", "g")),
    ),
    "none": ({"mode": "NONE"}, ToolChoice(ChoiceMode.NONE)),
    "validated": ({"mode": "VALIDATED"}, ToolChoice()),
    "validated some": ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, ToolChoice(allowed=("f",))),
    "auto some": ({"mode": "AUTO", "allowedFunctionNames": ["f"]}, ToolChoice(allowed=("f",))),
}
TWO = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]


@pytest.mark.parametrize("name", CHOICES)
def test_every_form_of_choice_is_read_and_written_back(name: str) -> None:
    calling, choice = CHOICES[name]
    request = decode(tools=TWO, tool_config={"function_calling_config": calling})
    assert request.choice == choice
    written = encode(request).get("toolConfig", {"functionCallingConfig": {"mode": "AUTO"}})["functionCallingConfig"]
    expected = {"mode": "AUTO"} | {camel(key): value for key, value in calling.items()}
    expected["mode"] = expected["mode"].upper().replace("MODE_UNSPECIFIED", "AUTO")
    assert written == expected


def test_what_else_the_tool_config_says_comes_back() -> None:
    config = {"retrievalConfig": {"languageCode": "de"}, "functionCallingConfig": {"mode": "ANY", "x": 1}}
    assert again(tools=TWO, toolConfig=config)["toolConfig"] == config
    only = {"retrievalConfig": {"languageCode": "de"}}
    assert again(toolConfig=only)["toolConfig"] == only


def test_calls_in_pieces_are_not_asked_for() -> None:
    config = {"functionCallingConfig": {"mode": "ANY", "streamFunctionCallArguments": True}}
    assert again(tools=TWO, toolConfig=config)["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}


@pytest.mark.parametrize(
    ("choice", "offered", "config"),
    [
        (ToolChoice(), ["f", "g"], None),
        (ToolChoice(allowed=("g",)), ["g"], None),
        (ToolChoice(ChoiceMode.REQUIRED), ["f", "g"], {"mode": "ANY"}),
        (ToolChoice(ChoiceMode.REQUIRED, allowed=("g",)), ["f", "g"], {"mode": "ANY", "allowedFunctionNames": ["g"]}),
        (ToolChoice(ChoiceMode.NAMED, "f"), ["f", "g"], {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice(ChoiceMode.NONE), ["f", "g"], {"mode": "NONE"}),
    ],
)
def test_choices_of_other_wires_are_said_in_the_words_of_this_one(
    choice: ToolChoice, offered: list[str], config: Body | None
) -> None:
    body = encode(Request("m", (), (Tool("f"), Tool("g")), choice))
    assert [one["name"] for one in body["tools"][0]["functionDeclarations"]] == offered
    assert body.get("toolConfig") == (config and {"functionCallingConfig": config})


def test_deferred_tools_are_not_offered() -> None:
    body = encode(Request("m", (), (Tool("f"), Tool("g", deferred=True))))
    assert [one["name"] for one in body["tools"][0]["functionDeclarations"]] == ["f"]


# ---------------------------------------------------------------- how to generate


def test_sampling_is_read_by_either_name_and_written_by_one() -> None:
    config = {"temperature": 0.5, "topP": 0.9, "topK": 40, "maxOutputTokens": 5, "stopSequences": ["x"], "seed": 7}
    config |= {"presencePenalty": 0.1, "frequencyPenalty": 0.2}
    snake = {"".join("_" + char.lower() if char.isupper() else char for char in key): v for key, v in config.items()}
    sampling = Sampling(5, 0.5, 0.9, 40, 0.2, 0.1, 7, ("x",))
    assert decode(generationConfig=config).sampling == sampling
    assert decode(generation_config=snake).sampling == sampling
    assert again(generation_config=snake)["generationConfig"] == config


def test_what_else_the_generation_config_says_comes_back() -> None:
    config = {"responseModalities": ["TEXT"], "thinkingConfig": {"thinkingBudget": 0, "includeThoughts": False}}
    assert again(generationConfig=config)["generationConfig"] == config
    assert again(safetySettings=[], cachedContent="c")["cachedContent"] == "c"


def test_a_thinking_level_is_an_effort() -> None:
    thinking = {"thinkingLevel": "HIGH", "includeThoughts": True}
    request = decode(generationConfig={"thinking_config": {"thinking_level": "high", "includeThoughts": True}})
    assert request.sampling.effort == "high"
    assert encode(request)["generationConfig"] == {"thinkingConfig": thinking}
    assert (
        decode(generationConfig={"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}}).sampling.effort
        is None
    )


@pytest.mark.parametrize(
    ("effort", "thinking"),
    [
        ("minimal", {"thinkingLevel": "MINIMAL"}),
        ("xhigh", {"thinkingLevel": "HIGH"}),
        ("none", {"thinkingBudget": 0}),
    ],
)
def test_efforts_of_other_wires_are_levels(effort: str, thinking: Body) -> None:
    assert encode(Request("m", (), sampling=Sampling(effort=effort)))["generationConfig"] == {
        "thinkingConfig": thinking
    }


def test_an_answer_in_json_has_a_schema_in_either_form_or_none() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    older = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    mime = {"responseMimeType": "application/json"}
    assert decode(generationConfig=mime).output_schema == {}
    assert again(generationConfig=mime)["generationConfig"] == mime
    for config in ({**mime, "responseJsonSchema": schema}, {**mime, "response_schema": older}):
        request = decode(generationConfig=config)
        assert request.output_schema == schema
        assert encode(request)["generationConfig"] == {**mime, "responseJsonSchema": schema}


def test_an_answer_that_is_no_json_is_left_to_the_vendor() -> None:
    config = {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}}
    assert decode(generationConfig=config).output_schema is None
    assert again(generationConfig=config)["generationConfig"] == config


def test_only_one_answer_is_given() -> None:
    assert decode(generationConfig={"candidateCount": 1}).extra == {"gemini": {}}
    with pytest.raises(BadField) as error:
        decode(generationConfig={"candidateCount": 2})
    assert error.value.field == "generationConfig.candidateCount"


# ---------------------------------------------------------------- what is no request


WRONG: list[tuple[Body, str]] = [
    ({"contents": 5}, "contents"),
    ({"contents": [5]}, "contents[0]"),
    ({"contents": [{"parts": [{"text": 5}]}]}, "contents[0].parts[0].text"),
    ({"contents": [{"parts": [{"text": "x", "thought": "yes"}]}]}, "contents[0].parts[0].thought"),
    ({"contents": [{"parts": {"text": 5}}]}, "contents[0].parts.text"),
    ({"contents": [{"parts": [{"functionCall": 5}]}]}, "contents[0].parts[0].functionCall"),
    ({"contents": [{"parts": [{"functionCall": {}}]}]}, "contents[0].parts[0].functionCall.name"),
    ({"contents": [{"parts": [call() | {"thoughtSignature": 5}]}]}, "contents[0].parts[0].thoughtSignature"),
    (
        {"contents": [{"parts": [{"functionCall": {"name": "f", "args": "{}"}}]}]},
        "contents[0].parts[0].functionCall.args",
    ),
    (
        {"contents": [{"parts": [{"functionResponse": {"response": "x"}}]}]},
        "contents[0].parts[0].functionResponse.response",
    ),
    ({"contents": [{"parts": [{"inlineData": "x"}]}]}, "contents[0].parts[0].inlineData"),
    ({"contents": [{"parts": [{"inlineData": {"mimeType": 5}}]}]}, "contents[0].parts[0].inlineData.mimeType"),
    ({"systemInstruction": 5}, "systemInstruction"),
    ({"tools": "x"}, "tools"),
    ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
    (
        {"tools": [{"functionDeclarations": [{"name": "f", "parameters": []}]}]},
        "tools[0].functionDeclarations[0].parameters",
    ),
    ({"toolConfig": []}, "toolConfig"),
    ({"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}}, "toolConfig.functionCallingConfig.mode"),
    ({"generationConfig": {"maxOutputTokens": 1.5}}, "generationConfig.maxOutputTokens"),
    (
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": 5}}},
        "generationConfig.thinkingConfig.thinkingLevel",
    ),
]


@pytest.mark.parametrize(("body", "field"), WRONG)
def test_a_field_of_the_wrong_type_is_named_by_its_path(body: Body, field: str) -> None:
    with pytest.raises(BadField) as error:
        decode(**body)
    assert error.value.field == field


ODD: tuple[Any, ...] = (None, True, 5, 1e300, "", "x", [], {}, [[]], [{}], {"x": {}})
SEVERAL: Body = {
    "systemInstruction": {"role": "user", "parts": [{"text": "a"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "a"}, {"inlineData": PNG}]},
        {"role": "model", "parts": [{"text": "b", "thought": True}, {**call(id="a", x=1), "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [answer({"output": "x"}, id="a", parts=[{"inlineData": PNG}])]},
    ],
    "tools": [
        {
            "functionDeclarations": [
                {"name": "f", "description": "d", "parameters": {"type": "OBJECT", "nullable": True}}
            ]
        },
        {"functionDeclarations": [{"name": "g", "parametersJsonSchema": {"type": "object"}}], "googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "generationConfig": {
        "temperature": 1,
        "topK": 1,
        "stopSequences": ["x"],
        "candidateCount": 1,
        "thinkingConfig": {"thinkingLevel": "LOW"},
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["b"]}}},
    },
    "safetySettings": [],
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - any JSON
    """Yield every container and every key in it."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = [*cast("Body", value)]
    elif isinstance(value, list):
        keys = [*range(len(cast("list[Any]", value)))]
    for key in keys:
        yield value, key
        yield from places(value[key])


def test_no_body_raises_anything_but_its_own_error() -> None:
    body = deepcopy(SEVERAL)
    for container, key in places(body):
        kept = container[key]
        for odd in ODD:
            container[key] = odd
            try:
                request = WIRE.decode_request(json.dumps(body).encode(), PATH)
            except BadField:
                continue
            WIRE.encode_request(request, QUIRKS)
            load("openai_chat").encode_request(request, QUIRKS)
        container[key] = kept
    assert body == SEVERAL


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b'"x"', b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadField):
        WIRE.decode_request(body, PATH)

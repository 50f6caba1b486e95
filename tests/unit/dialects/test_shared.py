"""What every reader allows itself."""

import pytest

from toolspeak.dialects import load, names
from toolspeak.dialects.core.markup import ENDS_OF_TURN
from toolspeak.ir.tool import Tool

NOW = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("token", ENDS_OF_TURN)
@pytest.mark.parametrize("before", ["It is noon.", NOW])
def test_an_end_of_turn_at_the_end_is_not_shown(before: str, token: str) -> None:
    turn = load("hermes").read(f"{before}{token}\n", [Tool("now")])
    assert turn.text in ("It is noon.", "")
    assert len(turn.calls) == (before == NOW)


@pytest.mark.parametrize("name", names())
def test_an_end_of_turn_in_the_midst_of_a_text_is_text(name: str) -> None:
    text = "ChatML ends a turn with <|im_end|> and a newline."
    assert load(name).read(text, [Tool("now")]).text == text


@pytest.mark.parametrize("before", ["{\n", "[\n", '{"a": 1,\n', "{}\n"])
def test_json_that_breaks_off_at_a_line_end_hides_no_call_on_the_next_line(before: str) -> None:
    text = f'{before}```tool_call\n{{"name": "now", "arguments": {{}}}}\n```'
    assert len(load("fenced").read(text, [Tool("now")]).calls) == 1


WEATHER = Tool(
    "get_weather",
    "Get the weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)


def _definition(parameters: str, more: str = "") -> str:
    return f'{{"name": "get_weather", "description": "Get the weather.", "parameters": {parameters}{more}}}'


@pytest.mark.parametrize("more", ["", ', "required": ["city"]', ', "strict": true'])
@pytest.mark.parametrize("fence", [("", ""), ("```json\n", "\n```")])
@pytest.mark.parametrize("name", ["hermes", "fenced", "any"])
def test_a_definition_with_values_in_place_of_its_schema_is_a_call(
    name: str, fence: tuple[str, str], more: str
) -> None:
    """Qwen2.5-Coder 0.5B copies the definition from the prompt and writes values where the schema was."""
    text = _definition('{"city": "Oslo", "days": 2}', more).join(fence)
    turn = load(name).read(text, [WEATHER])
    assert [(call.name, call.arguments) for call in turn.calls] == [("get_weather", '{"city": "Oslo", "days": 2}')]
    assert not turn.text


@pytest.mark.parametrize(
    "text",
    [
        _definition('{"type": "object", "properties": {"city": {"type": "string"}}}'),
        _definition('{"city": {"type": "string"}}'),
        _definition('{"days": 2}'),
        _definition('{"city": "Oslo", "unit": "C"}'),
        _definition("{}"),
        _definition('{"city": "Oslo"}', ', "output": "rain"'),
        _definition('{"city": "Oslo"}').replace("get_weather", "get_tides"),
        "A call looks like this:\n```json\n" + _definition('{"city": "Oslo"}') + "\n```\nIt asks for Oslo.",
    ],
    ids=["schema", "properties", "required", "unknown", "empty", "record", "no tool", "example"],
)
@pytest.mark.parametrize("name", ["hermes", "fenced", "any"])
def test_other_definitions_are_text(name: str, text: str) -> None:
    turn = load(name).read(text, [WEATHER])
    assert not turn.calls
    assert turn.text == text

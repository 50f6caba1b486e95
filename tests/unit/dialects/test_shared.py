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

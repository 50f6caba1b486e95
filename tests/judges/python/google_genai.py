"""google-genai on Gemini: whole, streamed, and with automatic function calling."""

import warnings

from checks import DESCRIPTION, PARAMETERS, PROMPT, URL, Ask, Heard, Judge, Theirs, Weather
from google import genai
from google.genai import errors, types

CLIENT = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=URL))
DECLARED = types.FunctionDeclaration(name="get_weather", description=DESCRIPTION, parameters_json_schema=PARAMETERS)
CONFIG = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[DECLARED])],
    thinking_config=types.ThinkingConfig(include_thoughts=True),
)
USER = types.Content(role="user", parts=[types.Part(text=PROMPT)])


def whole(model: str, contents: list[Theirs] | None = None, config: Theirs = CONFIG) -> list[Theirs]:
    response = CLIENT.models.generate_content(model=model, contents=contents or [USER], config=config)
    assert response.candidates[0].finish_reason == types.FinishReason.STOP, response
    assert response.usage_metadata.total_token_count == 34, response.usage_metadata
    return response.candidates[0].content.parts


def streamed(model: str, contents: list[Theirs] | None = None, config: Theirs = CONFIG) -> list[Theirs]:
    parts: list[Theirs] = []
    for chunk in CLIENT.models.generate_content_stream(model=model, contents=contents or [USER], config=config):
        content = chunk.candidates[0].content
        parts += (content.parts or []) if content else []
        last = chunk
    assert last.candidates[0].finish_reason == types.FinishReason.STOP, last
    assert last.usage_metadata.total_token_count == 34, last.usage_metadata
    return parts


def talk(ask: Ask, scenario: str, weather: Weather) -> Heard:
    parts = ask(scenario)
    calls = [part.function_call for part in parts if part.function_call]
    results = [
        types.FunctionResponse(
            id=call.id, name=call.name, response={"result": weather.run(call.name, call.args, call.id)}
        )
        for call in calls
    ]
    history = [
        USER,
        types.Content(role="model", parts=parts),
        types.Content(role="user", parts=[types.Part(function_response=result) for result in results]),
    ]
    return Heard(joined(parts), joined(parts, thought=True), joined(ask(scenario, history)))


def joined(parts: list[Theirs], *, thought: bool = False) -> str:
    return "".join(part.text for part in parts if part.text and bool(part.thought) == thought)


def automatic(ask: Ask, scenario: str, weather: Weather) -> Heard:
    """Let the client itself run the tool."""
    config = types.GenerateContentConfig(tools=[weather.get_weather])
    return Heard(final=joined(ask(scenario, None, config)))


def main() -> None:
    warnings.simplefilter("ignore")  # it is still experimental, it says
    judge = Judge(f"google-genai-python {genai.__version__}", "gemini")
    for mode, ask in {"generate_content": whole, "generate_content_stream": streamed}.items():
        judge.converse(mode, lambda scenario, weather, ask=ask: talk(ask, scenario, weather))
        judge.converse(f"{mode} automatic", lambda scenario, weather, ask=ask: automatic(ask, scenario, weather))
        judge.refuse(mode, "error", ask, errors.ClientError)
        judge.refuse(mode, "midstream", ask, errors.ServerError)
    judge.close()


main()

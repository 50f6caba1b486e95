"""pydantic-ai's agent on all five wires."""

from typing import Any

from note import asked, end, write_note
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

url, model, prompt, wire = asked()
WIRES: dict[str, Any] = {
    "openai_chat": lambda: OpenAIChatModel(model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none")),
    "openai_responses": lambda: OpenAIResponsesModel(
        model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none")
    ),
    "anthropic": lambda: AnthropicModel(model, provider=AnthropicProvider(base_url=url, api_key="none")),
    "gemini": lambda: GoogleModel(model, provider=GoogleProvider(base_url=url, api_key="none")),
    "ollama": lambda: OllamaModel(model, provider=OllamaProvider(base_url=f"{url}/v1")),
}
end(Agent(WIRES[wire](), tools=[write_note]).run_sync(prompt).output)

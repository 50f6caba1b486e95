"""langchain's agent on all five wires, streamed."""

from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from note import asked, end, write_note

url, model, prompt, wire = asked()
WIRES: dict[str, Any] = {
    "openai_chat": lambda: ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="none"),
    "openai_responses": lambda: ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="none", use_responses_api=True),
    "anthropic": lambda: ChatAnthropic(model=model, base_url=url, api_key="none", max_tokens=999),
    "gemini": lambda: ChatGoogleGenerativeAI(model=model, base_url=url, api_key="none"),
    "ollama": lambda: ChatOllama(model=model, base_url=url),
}
agent = create_agent(WIRES[wire](), tools=[write_note])
final = ""
for message, _ in agent.stream({"messages": [{"role": "user", "content": prompt}]}, stream_mode="messages"):
    if message.type == "AIMessageChunk":
        final += message.text
end(final)

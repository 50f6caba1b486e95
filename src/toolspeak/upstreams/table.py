"""The presets, one row each; `docs/upstreams.md` shows them, and a test compares the two."""

from typing import Final

from toolspeak.facts.model import Support
from toolspeak.facts.strategy import CONSTRAINTS
from toolspeak.ir.quirks import IdForm, Quirks
from toolspeak.upstreams import Auth, Preset

UPSTREAMS: Final = {
    # ---------------------------------------------------------------- vendors
    # Every model that Anthropic serves has tools.
    "anthropic": Preset(
        "Anthropic",
        "https://api.anthropic.com/v1",
        wire="anthropic",
        auth=Auth.X_API_KEY,
        key_env="ANTHROPIC_API_KEY",
        headers=(("anthropic-version", "2023-06-01"),),
        tools=Support.NATIVE,
        quirks=Quirks(constraint=CONSTRAINTS["anthropic"]),
    ),
    # Each customer has a host of their own, so the key's variable is named in the configuration: `key_env`. The path is
    # that of the API without `api-version`; a model is the name of a deployment.
    "azure": Preset("Azure OpenAI", url_form="https://RESOURCE.openai.azure.com/openai/v1", auth=Auth.API_KEY),
    # Takes an API key of Bedrock, usually in AWS_BEARER_TOKEN_BEDROCK; requests are not signed.
    "bedrock": Preset("Amazon Bedrock", url_form="https://bedrock-runtime.REGION.amazonaws.com/openai/v1"),
    # Refuses a history with `reasoning_content`.
    "cerebras": Preset(
        "Cerebras",
        "https://api.cerebras.ai/v1",
        key_env="CEREBRAS_API_KEY",
        quirks=Quirks(reasoning_history=False, constraint=CONSTRAINTS["cerebras"]),
    ),
    "deepinfra": Preset("DeepInfra", "https://api.deepinfra.com/v1/openai", key_env="DEEPINFRA_API_KEY"),
    # Wants the reasoning of earlier rounds back, which is the default.
    "deepseek": Preset("DeepSeek", "https://api.deepseek.com/v1", key_env="DEEPSEEK_API_KEY"),
    # Serves Gemma too, some of which has no tools, so nothing holds for all of its models.
    "gemini": Preset(
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        wire="gemini",
        auth=Auth.X_GOOG_API_KEY,
        key_env="GEMINI_API_KEY",
        quirks=Quirks(constraint=CONSTRAINTS["gemini"]),
    ),
    # Refuses a history with `reasoning_content`.
    "groq": Preset(
        "Groq",
        "https://api.groq.com/openai/v1",
        key_env="GROQ_API_KEY",
        quirks=Quirks(reasoning_history=False, constraint=CONSTRAINTS["groq"]),
    ),
    # Wants ids of nine letters and digits, and refuses a history with `reasoning_content`.
    "mistral": Preset(
        "Mistral",
        "https://api.mistral.ai/v1",
        key_env="MISTRAL_API_KEY",
        quirks=Quirks(ids=IdForm.MISTRAL, reasoning_history=False, constraint=CONSTRAINTS["mistral"]),
    ),
    # Kimi makes mistakes when its calls come back with ids that are not its own.
    "moonshot": Preset(
        "Moonshot AI", "https://api.moonshot.ai/v1", key_env="MOONSHOT_API_KEY", quirks=Quirks(ids=IdForm.KIMI)
    ),
    "openai": Preset(
        "OpenAI", "https://api.openai.com/v1", key_env="OPENAI_API_KEY", quirks=Quirks(constraint=CONSTRAINTS["openai"])
    ),
    "openrouter": Preset(
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY",
        quirks=Quirks(constraint=CONSTRAINTS["openrouter"]),
    ),
    "together": Preset(
        "Together AI",
        "https://api.together.ai/v1",
        key_env="TOGETHER_API_KEY",
        quirks=Quirks(constraint=CONSTRAINTS["together"]),
    ),
    # Takes an access token of Google Cloud, which expires after an hour; models are named like `google/gemini-2.5-pro`.
    "vertex": Preset(
        "Vertex AI",
        url_form="https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/endpoints/openapi",
    ),
    # ---------------------------------------------------------------- servers that people run themselves
    # Any other server that imitates OpenAI's chat completions; the user gives its URL.
    "compatible": Preset("OpenAI-compatible"),
    # `llama-server`.
    "llamacpp": Preset(
        "llama.cpp",
        "http://127.0.0.1:8080/v1",
        local=True,
        start="llama-server -m MODEL.gguf",
        quirks=Quirks(constraint=CONSTRAINTS["llamacpp"]),
    ),
    "lmstudio": Preset(
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        local=True,
        start="lms server start",
        quirks=Quirks(constraint=CONSTRAINTS["lmstudio"]),
    ),
    # Over its own API, which tells more than the one of OpenAI that it imitates.
    "ollama": Preset(
        "Ollama",
        "http://127.0.0.1:11434",
        wire="ollama",
        local=True,
        start="ollama serve",
        quirks=Quirks(constraint=CONSTRAINTS["ollama"]),
    ),
    "sglang": Preset(
        "SGLang",
        "http://127.0.0.1:30000/v1",
        local=True,
        start="python -m sglang.launch_server --model-path MODEL",
        quirks=Quirks(constraint=CONSTRAINTS["sglang"]),
    ),
    # `vllm serve`.
    "vllm": Preset(
        "vLLM",
        "http://127.0.0.1:8000/v1",
        local=True,
        start="vllm serve MODEL",
        quirks=Quirks(constraint=CONSTRAINTS["vllm"]),
    ),
}

"""Families whose calls are made of control tokens, or of a form that is only read.

Servers do not show control tokens, so that such a form cannot be asked for in a prompt: these models are taught the
default dialect, and what leaks of their own is read by `any`.
"""

from typing import Final

from toolspeak.facts._family import Family
from toolspeak.ir.quirks import IdForm

_MISTRALS = ("mistral", "ministral", "mixtral", "devstral", "magistral", "codestral", "pixtral", "voxtral")

TOKEN_FAMILIES: Final = (
    Family(
        "mistral",
        (*_MISTRALS, "open-mistral", "open-mixtral"),
        ("mistral:7b", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "devstral:24b", "open-mistral-nemo"),
        "its templates refuse ids that are not nine letters and digits; [TOOL_CALLS] is a control token",
        trained="mistral",
        ids=IdForm.MISTRAL,
    ),
    Family(
        "kimi-k2",
        ("kimi-k2",),
        ("moonshotai/kimi-k2-instruct-0905", "kimi-k2.5", "accounts/fireworks/models/kimi-k2-thinking"),
        "the id of a call is the only place of its name; it goes astray with ids that are not its own",
        trained="kimi",
        ids=IdForm.KIMI,
    ),
    Family(
        "kimi-k3",
        ("kimi-k3",),
        ("moonshotai/Kimi-K3",),
        "its channels and calls are control tokens",
        trained="kimi_k3",
    ),
    Family(
        "gpt-oss",
        ("gpt-oss",),
        ("gpt-oss:20b", "openai/gpt-oss-120b", "openai_gpt-oss-20b-MXFP4.gguf"),
        "where its server loses the tokens of harmony the words stay, and only this dialect reads them",
        trained="harmony",
        leaks_as="harmony",
    ),
    Family(
        "functionary",
        ("functionary",),
        ("meetkai/functionary-small-v3.2", "functionary-medium-v3.1"),
        "its >>>name lines look like prose to any other dialect",
        trained="functionary",
        leaks_as="functionary",
    ),
    Family(
        "deepseek",
        ("deepseek-v3", "deepseek-r1", "cogito-v2"),
        ("deepseek-r1", "deepseek-ai/DeepSeek-V3-0324", "deepseek-v3.1:671b"),
        "its sections and calls are control tokens",
        trained="deepseek",
    ),
    Family(
        "deepseek-dsml",
        ("deepseek-v3.2", "deepseek-v4"),
        ("deepseek-ai/DeepSeek-V3.2", "DeepSeek-V4"),
        "its tags have a control token in their names",
        trained="dsml",
    ),
    Family(
        "deepseek-v3.2-exp",
        ("deepseek-v3.2-exp",),
        ("deepseek-ai/DeepSeek-V3.2-Exp",),
        "it still writes as V3.1 does",
        trained="deepseek",
    ),
    Family(
        "gemma4",
        ("gemma-4",),
        ("google/gemma-4-E4B-it", "gemma4:31b"),
        "its calls and quotes are control tokens",
        trained="gemma",
    ),
    Family(
        "functiongemma",
        ("functiongemma",),
        ("google/functiongemma-270m-it",),
        "its calls and quotes are control tokens",
        trained="function_gemma",
    ),
    Family(
        "granite3",
        ("granite-3", "granite-20b-functioncalling"),
        ("granite3.3:8b", "ibm-granite/granite-3.1-2b-instruct"),
        "a control token before a JSON list, without an end",
        trained="granite",
    ),
    Family(
        "command",
        ("command-r", "command-a", "c4ai-command-r", "c4ai-command-a"),
        ("command-r7b", "CohereLabs/c4ai-command-r7b-12-2024", "command-a-03-2025"),
        "its actions are between control tokens, those of Command R in a fence",
        trained="cohere",
    ),
    Family(
        "jamba",
        ("jamba", "hunyuan-a13b", "apriel"),
        ("ai21labs/AI21-Jamba-Mini-1.6", "tencent/Hunyuan-A13B-Instruct", "ServiceNow-AI/Apriel-1.6-15b-Thinker"),
        "a JSON list in <tool_calls> tags",
        trained="jamba",
    ),
    Family(
        "nemotron",
        ("nemotron", "llama-3.[13]-nemotron"),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nvidia/Llama-3.3-Nemotron-Super-49B-v1.5"),
        "a JSON list in <TOOLCALL> tags",
        trained="nemotron",
    ),
    Family(
        "internlm",
        ("internlm-2", "internlm-2.5", "intern-s1"),
        ("internlm2:7b", "internlm/Intern-S1-mini"),
        "its actions are between control tokens",
        trained="internlm",
    ),
    Family(
        "lfm2",
        ("lfm2", "lfm2.5"),
        ("LiquidAI/LFM2-1.2B-GGUF", "lfm2.5:8b"),
        "a Python list between control tokens",
        trained="lfm2",
    ),
    Family(
        "olmo3",
        ("olmo-3",),
        ("allenai/Olmo-3-7B-Instruct",),
        "Python calls, one a line, in <function_calls> tags",
        trained="olmo",
    ),
    Family(
        "phi4-mini",
        ("phi-4-mini",),
        ("phi4-mini:3.8b", "microsoft/Phi-4-mini-instruct"),
        "a JSON list between control tokens",
        trained="phi",
    ),
    Family(
        "firefunction",
        ("firefunction-v2",),
        ("fireworks-ai/firefunction-v2",),
        "the word functools before a JSON list",
        trained="firefunction",
    ),
    Family(
        "seed-oss",
        ("seed-oss",),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct",),
        "qwen3-coder's tags in a wrapper of its own",
        trained="seed",
    ),
    Family(
        "minimax",
        ("minimax-m2", "minimax-m3"),
        ("MiniMaxAI/MiniMax-M2", "minimax-m2.5"),
        "invoke tags in a wrapper of its own",
        trained="minimax",
    ),
    Family(
        "minimax-m1",
        ("minimax-m1",),
        ("MiniMaxAI/MiniMax-M1-80k",),
        "JSON lines in <tool_calls> tags",
        trained="minimax_m1",
    ),
    Family(
        "step3",
        ("step3",),
        ("stepfun-ai/step3",),
        "invoke tags between control tokens",
        trained="step3",
    ),
    Family(
        "apertus",
        ("apertus",),
        ("swiss-ai/Apertus-8B-Instruct-2509",),
        "the tool's name is a key, between control tokens",
        trained="apertus",
    ),
    Family(
        "gigachat3",
        ("gigachat3", "gigachat3.1"),
        ("ai-sage/GigaChat3-10B-A1.8B",),
        "one JSON object behind a control token",
        trained="gigachat",
    ),
    Family(
        "longcat",
        ("longcat-flash",),
        ("meituan-longcat/LongCat-Flash-Chat",),
        "JSON in tags of its own name",
        trained="longcat",
    ),
    Family(
        "minicpm5",
        ("minicpm5",),
        ("openbmb/MiniCPM5-8B",),
        "function and param tags",
        trained="minicpm",
    ),
    Family(
        "solar-open",
        ("solar-open",),
        ("upstage/Solar-Open-100B",),
        "its calls are control tokens",
        trained="solar",
    ),
    Family(
        "hy3",
        ("hy3",),
        ("tencent/Hy3-preview",),
        "GLM's pairs behind a token of its own",
        trained="hy3",
    ),
)
"""The form is known, and not taught."""

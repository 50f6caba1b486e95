"""The golden cases: real outputs of models, and the expected results.

The texts are those of `toolspeak conformance` (`CASES`); this folder has requests, templates and fuzzed inputs.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from toolspeak import conformance
from toolspeak.conformance.cases import case_rows, failure_rows
from toolspeak.dialects import Dialect, ReadOptions, load
from toolspeak.dialects.keyed import keyed
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice

GOLDEN = Path(__file__).parent
CASES = Path(conformance.__file__).parent / "data"
"""The texts, which are in the wheel."""

BY_HINT = {
    "hermes_json": "hermes",
    "agent": "hermes",
    "sse": "hermes",
    "qwen_xml": "qwen_xml",
    "mistral": "mistral",
    "anthropic_xml": "invoke_xml",
    "glm": "glm",
    "dsml": "dsml",
    "kimi_k2": "kimi",
    "pythonic": "pythonic",
    "bare_json": "llama_json",
    "llama3_json": "llama_json",
    "harmony": "harmony",
    "harmony_stripped": "harmony",
    "tag_json": "tag_json",
    "react": "react",
    "gemma4": "gemma",
    "lfm2": "lfm2",
    "fenced_json": "json_action",
    "native_openai": "hermes",
}
BY_SAMPLE = {
    "D01": "hermes",
    "D03": "longcat",
    "D04": "hermes",
    "D05": "jamba",
    "D06": "minimax_m1",
    "D07": "nemotron",
    "D08": "granite",
    "D09-": "internlm",
    "D09b": "apertus",
    "D09c": "gigachat",
    "D09d": "inkling",
    "D10": "llama_json",
    "D11": "mistral",
    "D12": "mistral",
    "D13": "cohere",
    "D14-functools": "firefunction",
    "D14-phi": "phi",
    "D15": "functionary",
    "D16": "deepseek",
    "D17": "deepseek",
    "D18-": "kimi",
    "D18b": "solar",
    "D19": "functionary",
    "D20": "qwen_xml",
    "D21": "seed",
    "D22": "dsml",
    "D23": "invoke_xml",
    "D24": "glm",
    "D25": "hy3",
    "D26": "minimax",
    "D27-dots": "dots",
    "D27-muse": "muse",
    "D27-step3": "step3",
    "D28": "minicpm",
    "D30": "kimi_k3",
    "D31": "pythonic",
    "D32": "llama4",
    "D33": "olmo",
    "D34": "lfm2",
    "D35": "tool_code",
    "D36": "function_gemma",
    "D37": "gemma",
    "D38": "harmony",
    "D39-react": "react",
    "D39-langchain": "langchain",
    "D39-qwen": "qwen_star",
    "D40": "json_action",
    "D41": "inline_json",
    "D42": "decision_json",
    "D43": "lmstudio",
    "D44": "cline",
    "D45": "fenced",
    "D46": "steps_json",
    "BAD-M16": "kimi",
    "BAD-M18": "react",
    "BAD-M21": "invoke_xml",
    "BAD-NEG-unclosed-invoke": "invoke_xml",
    "BAD-M22": "dsml",
    "BAD-": "hermes",
}


@dataclass(frozen=True)
class Case:
    """One text and its expected result. `text`, `reasoning` and `invalid` are None without an expectation."""

    id: str
    dialect: Dialect
    tools: tuple[Tool, ...]
    raw: str
    calls: list[dict[str, Any]]
    text: str | None = None
    reasoning: str | None = None
    invalid: list[dict[str, Any]] | None = None
    options: ReadOptions = ReadOptions()
    deltas: list[Any] | None = None
    body: str = "text"
    """The kind of `raw`: text, or the bytes of an SSE stream of an OpenAI-compatible server."""
    disconnected: bool = False
    notes: str = field(default="", compare=False)


def cases() -> list[Case]:
    """Return all parser cases."""
    return [*failures(), *samples()]


@cache
def changes() -> dict[str, dict[str, Any]]:
    """Return the expectations that were judged wrong, with the reason for each."""
    path = GOLDEN / "changed.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return {change["id"]: change for change in (json.loads(line) for line in lines if line)}


def failures() -> list[Case]:
    """Return the 225 parser cases of the failure corpus."""
    return [_failure(row) for row in failure_rows()]


def samples() -> list[Case]:
    """Return the 89 dialect samples."""
    head, *rows = case_rows("samples")
    tools = _tools(head["tools"])
    return [_sample(row, tools) for row in rows]


def _failure(row: dict[str, Any]) -> Case:
    expect = row["expect"] | changes().get(row["id"], {}).get("expect", {})
    return Case(
        row["id"],
        keyed(row["nonce"]) if row["dialect_hint"] == "nonce_json" else load(BY_HINT[row["dialect_hint"]]),
        _tools(row["tools"]),
        row["raw_output"],
        expect["calls"],
        expect["text"],
        expect.get("reasoning"),
        expect.get("invalid", []),
        _options(row),
        row.get("native_deltas"),
        "sse" if row["raw_output"].startswith("data: ") else "text",
        row.get("stream_end") == "eof",
        expect.get("notes", ""),
    )


def _options(row: dict[str, Any]) -> ReadOptions:
    limit = row["expect"].get("limits", {}).get("max_calls_per_response", 128)
    stop = tuple(row.get("context", {}).get("stop", ()))
    return ReadOptions(_choice(row), stop, max_calls=limit)


def _choice(row: dict[str, Any]) -> ToolChoice:
    choice: Any = row.get("tool_choice", "auto")
    parallel: bool = row.get("parallel_tool_calls", True)
    if not isinstance(choice, str):
        return ToolChoice(ChoiceMode.NAMED, choice["function"]["name"], parallel)
    return ToolChoice(ChoiceMode(choice), parallel=parallel) if (choice, parallel) != ("auto", True) else AUTO


def _sample(row: dict[str, Any], tools: tuple[Tool, ...]) -> Case:
    name = row["dialect"]
    dialect = next(dialect for prefix, dialect in BY_SAMPLE.items() if name.startswith(prefix))
    return Case(name, load(dialect), tools, row["text"], row["calls"])


def _tools(rows: list[dict[str, Any]]) -> tuple[Tool, ...]:
    return tuple(Tool(row["name"], row.get("description", ""), row.get("parameters", {})) for row in rows)

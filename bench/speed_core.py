"""`just speed-core`: the cost of reading, in µs of CPU per chunk of 4 characters, from creating the reader to its end.

`--profile` shows where the time goes; `--save` keeps the figures in bench/results/speed-core.json.
"""

import cProfile
import gc
import json
import platform
import pstats
import statistics
import sys
import time
from functools import cache
from pathlib import Path

from testkit.report import close, progress
from toolspeak.dialects import load
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

BAR_US = 10.0
CHUNK = 4
ROUNDS = 15
ROUND_S = 0.04
RESULTS = Path(__file__).parent / "results" / "speed-core.json"

PROSE = (
    "The harbour is quiet in the morning and the first ferry leaves at half past six. Most people take it to work, "
    "some only for the view over the fjord. When the weather is bad the crossing takes a little longer, and the "
    "captain says so over the loudspeaker. Nobody minds: there is coffee on board, and the seats are warm. "
)
MARKDOWN = (
    "## Plan\n\nThe function `read_file` returns *all* lines, so for large files (n > 10_000) "
    "we need **another** way:\n\n"
    "1. open the file and read 4 KB;\n2. stop as soon as `len(lines) >= limit`, or if a < b;\n"
    "3. return what we have.\n\n> Note: the old way stays for small files.\n\n"
    "| size | time |\n| --- | --- |\n| < 1 MB | 3 ms |\n\nSee [the docs](https://example.org/a?b=c) for more.\n\n"
)
CODE = (
    "Here it is:\n\n```python\ndef read(path: str, limit: int = 100) -> list[str]:\n    with open(path) as file:\n"
    '        return [line.rstrip("\\n") for line in file if line and len(line) < limit]\n```\n\nThat is all.\n'
)
THOUGHT = f"<think>\n{PROSE}Perhaps a < b; I could call `read_file` first.\n{PROSE}</think>\n\nDone.\n"

TEXT = 'Oslo is the capital of Norway.\\nIt has about 700 000 people and lies at the end of a fjord; see \\"notes\\".'
RAW = TEXT.replace("\\n", "\n").replace('\\"', '"')
ARGUMENTS = f'{{"path": "docs/oslo.md", "text": "{TEXT}", "append": true, "mode": 420}}'
NAMED = f'{{"name": "write_file", "arguments": {ARGUMENTS}}}'
VALUES = (("path", "docs/oslo.md"), ("text", RAW), ("append", "true"), ("mode", "420"))


def _tagged(parameter: str, end: str) -> str:
    return "\n".join(f"{parameter.format(key)}{value}{end}" for key, value in VALUES)


QWEN = _tagged("<parameter={}>\n", "\n</parameter>")
INVOKE = _tagged('<parameter name="{}">', "</parameter>")
GLM = _tagged("<arg_key>{}</arg_key>\n<arg_value>", "</arg_value>")
CALLS = {
    "hermes": f"<tool_call>\n{NAMED}\n</tool_call>",
    "fenced": f"```tool_call\n{NAMED}\n```",
    "mistral": f"[TOOL_CALLS]write_file[ARGS]{ARGUMENTS}",
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>"
        f"{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "qwen_xml": f"<tool_call>\n<function=write_file>\n{QWEN}\n</function>\n</tool_call>",
    "invoke_xml": f'<function_calls>\n<invoke name="write_file">\n{INVOKE}\n</invoke>\n</function_calls>',
    "glm": f"<tool_call>write_file\n{GLM}\n</tool_call>",
    "pythonic": f'[write_file(path="docs/oslo.md", text="{TEXT}", append=True, mode=420)]',
    "gemma": (
        '<|tool_call>call:write_file{append:true,mode:420,path:<|"|>docs/oslo.md<|"|>,text:<|"|>'
        f'{RAW}<|"|>}}<tool_call|>'
    ),
    "harmony": (
        "<|channel|>analysis<|message|>The notes belong in a file.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.write_file <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
    ),
    "react": f"Thought: the notes belong in a file.\nAction: write_file\nAction Input: {ARGUMENTS}\n",
}
TEXTS = {
    "plain text": ("hermes", (PROSE + MARKDOWN) * 4),
    "prose": ("hermes", PROSE * 8),
    "reasoning": ("hermes", THOUGHT * 3),
    "code in a fence": ("hermes", CODE * 6),
    "plain text, any": ("any", (PROSE + MARKDOWN) * 4),
    **{f"a call, {name}": (name, text) for name, text in CALLS.items()},
}


def _schema(properties: dict[str, Json], *required: str) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _string(description: str) -> JsonObject:
    return {"type": "string", "description": description}


PATH = _string("Path of the file, relative to the working directory.")
COUNT: JsonObject = {"type": "integer", "minimum": 0, "description": "How many lines at most."}
FLAG: JsonObject = {"type": "boolean", "default": False}
UNIT: JsonObject = {"type": "string", "enum": ["celsius", "fahrenheit"]}
TAGS: JsonObject = {"type": "array", "items": {"type": "string"}, "maxItems": 20}
EDITS: JsonObject = {
    "type": "array",
    "items": _schema({"old": _string("Text to replace."), "new": _string("Text to put there.")}, "old", "new"),
}
TOOLS = (
    Tool(
        "write_file",
        "Write a text file.",
        _schema({"path": PATH, "text": _string("All of it."), "append": FLAG, "mode": COUNT}, "path", "text"),
    ),
    Tool("read_file", "Read a text file.", _schema({"path": PATH, "offset": COUNT, "limit": COUNT}, "path")),
    Tool("edit_file", "Replace texts in a file.", _schema({"path": PATH, "edits": EDITS}, "path", "edits")),
    Tool("list_files", "List a folder.", _schema({"path": PATH, "recursive": FLAG}, "path")),
    Tool("search", "Search all files.", _schema({"pattern": _string("What to look for."), "limit": COUNT}, "pattern")),
    Tool(
        "run", "Run a command.", _schema({"command": _string("One line."), "timeout_s": {"type": "number"}}, "command")
    ),
    Tool("get_weather", "Weather of a city.", _schema({"city": _string("Its name."), "unit": UNIT}, "city")),
    Tool(
        "send_mail",
        "Send a mail.",
        _schema({"to": TAGS, "subject": _string("One line."), "body": _string("Text.")}, "to", "body"),
    ),
    Tool("add_note", "Remember something.", _schema({"text": _string("The note."), "tags": TAGS}, "text")),
    Tool("now", "The time.", _schema({})),
)


@cache
def tools() -> ToolSet:
    """Return ten tools, compiled."""
    return ToolSet.of(TOOLS)


def read(name: str, pieces: list[str]) -> None:
    """Read one turn."""
    reader = load(name).reader(tools())
    for piece in pieces:
        reader.feed(piece)
    reader.finish()


def cut(text: str) -> list[str]:
    """Cut a text into chunks."""
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


def round_us(name: str, pieces: list[str], times: int) -> float:
    """Measure one round, in µs per chunk."""
    start = time.process_time()
    for _ in range(times):
        read(name, pieces)
    return (time.process_time() - start) / times / len(pieces) * 1e6


def measure(texts: dict[str, tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Return median and best for each text; the rounds of all texts are interleaved."""
    cuts = {what: (name, cut(text)) for what, (name, text) in texts.items()}
    times = {
        what: max(1, int(ROUND_S / (round_us(name, pieces, 1) * len(pieces) * 1e-6)))
        for what, (name, pieces) in cuts.items()
    }
    rounds: dict[str, list[float]] = {what: [] for what in texts}
    for done in range(ROUNDS):
        for what, (name, pieces) in cuts.items():
            rounds[what].append(round_us(name, pieces, times[what]))
        progress(done + 1, ROUNDS, "rounds")
    return {what: (statistics.median(found), min(found)) for what, found in rounds.items()}


def check() -> list[str]:
    """Return the texts that are not read right: the speed of wrong answers does not count."""
    turns = {what: load(name).read(text, tools()) for what, (name, text) in TEXTS.items()}
    return [what for what, turn in turns.items() if len(turn.calls) != what.startswith("a call") or turn.complaints]


def profile(what: str) -> None:
    """Show where the time goes."""
    name, text = TEXTS[what]
    pieces = cut(text)
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(max(1, 20_000 // len(pieces))):
        read(name, pieces)
    profiler.disable()
    print(f"--- {what}")
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(15)


def save(found: dict[str, tuple[float, float]]) -> None:
    """Keep the figures."""
    RESULTS.parent.mkdir(exist_ok=True)
    figures = {
        what: {"median_us": round(median, 2), "best_us": round(best, 2)} for what, (median, best) in found.items()
    }
    body = {"python": platform.python_version(), "chunk": CHUNK, "tools": len(TOOLS), "texts": figures}
    RESULTS.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Measure all texts."""
    wrong = check()
    if "--profile" in sys.argv:
        profile("plain text")
        profile("a call, hermes")
    gc.disable()
    found = measure(TEXTS)
    print(f"{'µs per chunk of 4 characters':30} median    best")
    for what, (median, best) in found.items():
        print(f"{what:30} {median:6.2f}  {best:6.2f}")
    for what in wrong:
        print(f"WRONG {what}: not read as it should be")
    if "--save" in sys.argv:
        save(found)
    text_us, prose_us = found["plain text"][0], found["prose"][0]
    call_us = max(median for what, (median, _) in found.items() if what.startswith("a call"))
    figures = {
        "text_us": text_us,
        "prose_us": prose_us,
        "any_us": found["plain text, any"][0],
        "slowest_call_us": call_us,
    }
    close("speed-core", ok=text_us <= BAR_US and not wrong, **{key: round(value, 2) for key, value in figures.items()})


if __name__ == "__main__":
    main()

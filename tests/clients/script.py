r"""The scripted model: it reads a prompt, and says which tool to call or what to answer.

    user: … a note with the code tok-1a2b3c4d …      first: a call of the offered tool that writes `out.txt`
    tool: kept-me                                    then: "fin-1a2b3c4d", but only if the tool's own mark has come back

It knows the agents' tools by name. Tools that are not offered are not called: it looks for them in the request's
`tools`, or, where there are none, in what the prompt teaches. What it writes has quotes, a backslash, an emoji and
several lines in it, so that a lost escape shows in the file.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

Body: TypeAlias = Mapping[str, Any]
Message: TypeAlias = Mapping[str, Any]
Offered: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Tools by name, with the fields of their arguments."""

CODE = re.compile(r"\btok-([0-9a-f]{8})\b")
FOLDER = re.compile(r"in the current folder, `([^`]+)`")
WISH = re.compile(r"Use the tool `([\w.-]+)`")
WHOLE_FILE = "Answer with the whole file"
TITLE = "A note"


PATH = "<path>"
"""Stands for the path of the file, which only the prompt tells."""


def content_of(code: str) -> str:
    """Return what the file must hold in the end."""
    return f'code {code}\nsay "hei" to C:\\new & `co` 🌦\n'


def prompt_of(code: str, folder: str, wish: str = "") -> str:
    """Return what the user asks an agent for."""
    wished = f" Use the tool `{wish}`." if wish else ""
    return f"Write a note with the code tok-{code} into the file out.txt in the current folder, `{folder}`.{wished}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that the model wants: JSON arguments, or free text for a custom tool."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """What the model says: text, a call, or both."""

    code: str
    """Of the row that asked; empty for requests that belong to none."""
    text: str = ""
    call: Asked | None = None


# ---------------------------------------------------------------- tools


def _shell(code: str) -> str:
    return f"cat > out.txt <<'END'\n{content_of(code)}END\nprintf 'kept-%s\\n' shell"


def _submitting_shell(code: str) -> str:
    """Write the file and end the run, as mini-swe-agent wants it."""
    return f"cat > out.txt <<'END'\n{content_of(code)}END\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def _patch(code: str) -> str:
    lines = "".join(f"+{line}\n" for line in content_of(code).splitlines())
    return f"*** Begin Patch\n*** Add File: out.txt\n{lines}*** End Patch"


def _command(code: str) -> dict[str, Any]:
    return {"command": _shell(code)}


@dataclass(frozen=True, slots=True)
class Known:
    """A tool that the model knows how to use."""

    name: str
    arguments: Callable[[str], dict[str, Any]]
    mark: str = r"kept-\w+"
    """What its result must show before the model believes that it ran."""


KNOWN = (
    Known("write_note", lambda code: {"text": content_of(code)}),
    Known("apply_patch", lambda code: {"input": _patch(code)}, mark=r"out\.txt"),
    Known("write_file", lambda code: {"file_path": PATH, "content": content_of(code)}, mark=r"(?i)success\w*"),
    Known("exec_command", lambda code: {"cmd": _shell(code)}),
    Known("run_shell_command", _command),
    Known("run_commands", lambda code: {"commands": [_shell(code)]}),
    Known("Bash", _command),
    Known("bash", lambda code: {"command": _shell(code), "description": "write the note"}),
    Known("shell", _command),
)
BY_DEFAULT = tuple(known for known in KNOWN if known.name not in {"apply_patch", "write_file"})
SUBMIT = Known("bash", lambda code: {"command": _submitting_shell(code)})
SUBMITS = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def known_tool(offered: Iterable[str], wish: str, prompt: str) -> tuple[str, Known] | None:
    """Choose a tool: its name as it is offered (with the name of its namespace, perhaps), and how to use it."""
    if SUBMITS in prompt and "bash" in offered:
        return "bash", SUBMIT
    for known in KNOWN if wish else BY_DEFAULT:
        for name in offered:
            if known.name in {name, re.split(r"__|[./:]", name)[-1]} and wish in {"", known.name}:
                return name, known
    return None


# ---------------------------------------------------------------- prompts


def text_of(message: Message) -> str:
    """Return the text of a message, whatever its shape."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def offered_in(body: Body) -> Offered:
    """Return the tools of the request itself."""
    tools: list[dict[str, Any]] = body.get("tools") or []
    return _fields(tool.get(tool.get("type", ""), tool) for tool in tools)


def taught_in(messages: Sequence[Message]) -> Offered:
    """Return the tools that the prompt teaches: one tool as JSON in each line."""
    lines = (line for message in messages if message.get("role") != "user" for line in text_of(message).splitlines())
    return _fields(tool for tool in map(_json, lines) if "name" in tool and "description" in tool)


def _fields(tools: Iterable[Mapping[str, Any]]) -> Offered:
    schemas: dict[str, dict[str, Any]] = {tool["name"]: tool.get("parameters") or {} for tool in tools}
    return {name: schema.get("properties", {}) for name, schema in schemas.items()}


def _json(line: str) -> dict[str, Any]:
    if not line.startswith('{"'):
        return {}
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def says(body: Body) -> Said:
    """Answer one request in the shape of Chat Completions."""
    messages: Sequence[Message] = body["messages"]
    prompt = "\n".join(text_of(message) for message in messages)
    code = _code(messages)
    offered = offered_in(body) or taught_in(messages)
    if not code or not offered:
        return Said(code, text=_whole_file(code) if WHOLE_FILE in prompt else TITLE)
    wish = "".join(WISH.findall(prompt)[-1:])
    found = known_tool(offered, wish, prompt)
    if found is None:
        return Said(code, text=f"I know none of these tools: {', '.join(offered)}")
    name, known = found
    results = list(_after_call(messages, code))
    if results:
        return _finish(code, known, "\n".join(results), offered)
    path = f"{FOLDER.findall(prompt)[-1]}/out.txt"
    filled = {key: path if value == PATH else value for key, value in known.arguments(code).items()}
    arguments = {key: value for key, value in filled.items() if key in offered[name]}
    return Said(code, "I will write it.\n\n", Asked(name, arguments))


def _code(messages: Sequence[Message]) -> str:
    codes = [code for message in messages if message.get("role") == "user" for code in CODE.findall(text_of(message))]
    return codes[-1] if codes else ""


def _after_call(messages: Sequence[Message], code: str) -> Iterator[str]:
    """Yield what came after the model's own call: results, in a role of their own or in the user's."""
    called = False
    for message in messages:
        if called and message.get("role") != "assistant":
            yield text_of(message)
        elif message.get("role") == "assistant":
            called = called or bool(message.get("tool_calls")) or f"code {code}" in text_of(message)


def echoes(body: Body, code: str) -> int:
    """Count how often the model's call stands in the text of what it said before."""
    said = [text_of(message) for message in body["messages"] if message.get("role") == "assistant"]
    return sum(text.count(f"code {code}") for text in said) if code else 0


def _finish(code: str, known: Known, results: str, offered: Iterable[str]) -> Said:
    mark = re.search(known.mark, results)
    text = f"The note is written: fin-{code}, {mark.group()}." if mark else f"The tool did not run: {results[-400:]}"
    if "final_answer" in offered:
        return Said(code, call=Asked("final_answer", {"answer": text}))
    return Said(code, text)


def _whole_file(code: str) -> str:
    return f"Here is the file, fin-{code}.\n\nout.txt\n```\n{content_of(code)}```\n"

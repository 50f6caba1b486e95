"""A pytest plugin that puts toolspeak's parsers in the place of vLLM's; run by the Python of `.venv-vllm`.

`own_tests` gives it to vLLM's own tests. `--own-parsers` leaves vLLM's parsers in place, to see which tests fail
without us. What is adapted, and why:

- The tokenizers of the models are not there: `vllm_tokenizer` takes their place.
- A test ends a stream by no longer feeding it. The server calls `finish_streaming`, and so does each helper here.
- Most tests offer no tools, or not those that are called, and our readers read no call without its tool: a test without
  tools has a tool without a schema for each word in the strings of its file.
- Most tests of streamed reasoning show no prompt. The server does, and for models whose template opens the reasoning
  the prompt says so.
- Many tests compare the text of JSON: it has the blanks of Python's `json`.
"""

# vLLM's types are unknown here: it is in an environment of its own.
# pyright: basic, reportMissingImports=false

import ast
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest

from testkit.stubs import VLLM, replace
from tests.model_servers.vllm_tokenizer import MadeTokenizer

TOOL_PARSERS: Final = {
    "apertus": "apertus",
    "deepseek_v3": "deepseek",
    "deepseek_v31": "deepseek",
    "deepseek_v32": "dsml",
    "deepseek_v4": "dsml",
    "deepseek_v41": "dsml",
    "dots": "dots",
    "ernie45": "hermes",
    "functiongemma": "function_gemma",
    "gemma4": "gemma",
    "gigachat3": "gigachat",
    "glm45": "glm",
    "glm47": "glm",
    "granite": "granite",
    "granite-20b-fc": "granite",
    "granite4": "hermes",
    "hermes": "hermes",
    "hunyuan_a13b": "tag_json",
    "hy_v3": "hy3",
    "internlm": "internlm",
    "jamba": "jamba",
    "kimi_k2": "kimi",
    "kimi_k3": "kimi_k3",
    "lfm2": "lfm2",
    "llama3_json": "llama_json",
    "llama4_json": "llama_json",
    "llama4_pythonic": "llama4",
    "longcat": "longcat",
    "minicpm5": "minicpm",
    "minimax_m2": "minimax",
    "minimax_m3": "minimax",
    "olmo3": "olmo",
    "phi4_mini_json": "firefunction",
    "pythonic": "pythonic",
    "qwen3_coder": "qwen_xml",
    "qwen3_xml": "qwen_xml",
    "seed_oss": "seed",
    "step3": "step3",
    "step3p5": "qwen_xml",
    "xlam": "any",
}
"""Parsers of vLLM, and the dialect of the same form."""
REASONING_PARSERS: Final = {
    "deepseek_r1": "deepseek",
    "deepseek_v3": "deepseek",
    "deepseek_v4": "dsml",
    "ernie45": "hermes",
    "gemma4": "gemma",
    "glm45": "glm",
    "glm47": "glm",
    "granite": "granite",
    "granite_thinking_parser": "granite",
    "holo2": "hermes",
    "hunyuan_a13b": "tag_json",
    "hy_v3": "hy3",
    "kimi_k2": "kimi",
    "kimi_k3": "kimi_k3",
    "minimax_m2": "minimax",
    "minimax_m3": "minimax",
    "nemotron_v3": "nemotron",
    "olmo3": "olmo",
    "qwen3": "qwen_xml",
    "step3": "step3",
    "step3p5": "qwen_xml",
}
OPENED_BY_PROMPT: Final = (
    *("deepseek_r1", "deepseek_v3", "deepseek_v4", "ernie45", "glm45", "glm47", "granite_thinking_parser", "holo2"),
    *("kimi_k2", "kimi_k3", "minimax_m2", "nemotron_v3", "olmo3", "qwen3", "step3", "step3p5"),
)
"""Parsers of vLLM that take reasoning to be open at the start, as the templates of their models open it."""
STREAM_HELPERS: Final = (
    *("_simulate_streaming", "_stream", "_stream_chunked", "stream", "_feed"),
    *("stream_delta_message_generator", "stream_delta_message_generator_from_chunks"),
)
"""Functions of the tests that feed a parser piece by piece and return or yield all that it said."""
_WORD: Final = re.compile(r"[A-Za-z_][\w.-]*")


class Usage:
    """The test that runs: the tools it is given, and whether it has used a parser of ours."""

    words: tuple[str, ...] = ()
    is_ours = False


class AdaptedParser:
    """A parser of ours in a test: it notes that it is used."""

    def __getattribute__(self, name: str) -> Any:
        Usage.is_ours = True
        return super().__getattribute__(name)


class AdaptedToolParser(AdaptedParser):
    def _reader(self, request: Any, *, streams_calls: bool) -> Any:
        """Read with the tools of the test, or with one for each word if it has none."""
        requested = getattr(request, "tools", None)
        offered = requested or self._offered  # type: ignore[attr-defined]
        fields = ("messages", "input", "parallel_tool_calls", "tool_choice")
        given = {name: getattr(request, name, None) for name in fields}
        if not requested:  # vLLM's choice is `none` then
            given["tool_choice"] = "auto"
        known = {tool.name for tool in import_module("toolspeak.integrations.messages").offered_tools(offered)}
        words = [{"name": word} for word in Usage.words if word not in known]
        adapted = SimpleNamespace(**given, tools=[*offered, *words])
        return super()._reader(adapted, streams_calls=streams_calls)  # type: ignore[misc]


class AdaptedReasoningParser(AdaptedParser):
    is_opened = False

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)  # pyright: ignore[reportCallIssue] (the other base is vLLM's)
        template = kwargs.get("chat_template_kwargs") or {}
        is_disabled = False in (template.get("enable_thinking"), template.get("thinking"))
        is_asked_for = template.get("thinking_mode") == "enabled" or template.get("reasoning_effort") == "high"
        opener = self._markers.first(opens=True)  # type: ignore[attr-defined]
        if opener and (is_asked_for or (self.is_opened and not is_disabled)):
            self.adjust_initial_state_from_prompt(opener.ids)  # type: ignore[attr-defined]


def put_ours_in_place() -> None:
    """Give vLLM our classes under its names: in its registry, and in the modules that tests import from."""
    ours: Any = import_module("toolspeak.integrations.vllm")
    tools: Any = import_module("vllm.tool_parsers").ToolParserManager
    reasoning: Any = import_module("vllm.reasoning").ReasoningParserManager

    for module, _ in (*tools.lazy_parsers.values(), *reasoning.lazy_parsers.values()):
        import_module(module)  # so that the parsers that stay vLLM's have no base class of ours

    @functools.cache  # names of one class of vLLM's are names of one class here
    def tool_parser(dialect: str) -> type:
        return type(f"ours_{dialect}", (AdaptedToolParser, ours.tool_parser(dialect)), {})

    @functools.cache
    def reasoning_parser(dialect: str, is_opened: bool) -> type:
        bases = (AdaptedReasoningParser, ours.reasoning_parser(dialect))
        return type(f"ours_{dialect}", bases, {"is_opened": is_opened})

    for name, dialect in TOOL_PARSERS.items():
        _place(tools.lazy_parsers[name], tools.tool_parsers, name, tool_parser(dialect))
    for name, dialect in REASONING_PARSERS.items():
        parser = reasoning_parser(dialect, name in OPENED_BY_PROMPT)
        _place(reasoning.lazy_parsers[name], reasoning.reasoning_parsers, name, parser)
    check: Any = import_module("toolspeak.toolset.check")
    check.dump = functools.partial(json.dumps, ensure_ascii=False)


def _place(home: tuple[str, str], registry: dict[str, type], name: str, parser: type) -> None:
    module, attribute = home
    setattr(import_module(module), attribute, parser)
    adapters = import_module("vllm.parser.engine.registered_adapters")
    if hasattr(adapters, attribute):
        setattr(adapters, attribute, parser)
    registry[name] = parser


# ---------------------------------------------------------------- the end of a stream


def ending(helper: Callable[..., Any]) -> Callable[..., Any]:
    """Let a helper of the tests end the stream as the server does."""

    @functools.wraps(helper)
    def ended(*args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        parser = next((value for value in values if isinstance(value, AdaptedParser)), None)
        found = helper(*args, **kwargs)
        if parser is None:
            return found
        if inspect.isgenerator(found):
            return _with_last(found, parser)
        last = parser.finish_streaming()
        if last is None:
            return found
        if hasattr(found, "append_delta"):  # vLLM's reconstructor; a last delta may end several calls
            found._assert_one_tool_per_delta = False
            found.append_delta(last)
        else:
            found.append(("", last) if found and isinstance(found[-1], tuple) else last)
        return found

    return ended


def _with_last(deltas: Iterable[Any], parser: Any) -> Iterator[Any]:
    yield from deltas
    last = parser.finish_streaming()
    if last is not None:
        yield last


# ---------------------------------------------------------------- hooks of pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--own-parsers", action="store_true", help="leave vLLM's parsers in place")
    parser.addoption("--outcomes", type=Path, help="the file of JSON to write the outcomes to")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Prepare vLLM before the first of the tests' files is imported."""
    replace(*VLLM)
    transformers: Any = import_module("transformers")
    transformers.AutoTokenizer.from_pretrained = staticmethod(lambda *_, **__: MadeTokenizer())
    for module in ("vllm.tokenizers", "vllm.tokenizers.registry"):
        tokenizers: Any = import_module(module)
        tokenizers.get_tokenizer = lambda *_, **__: MadeTokenizer()
    if not early_config.known_args_namespace.own_parsers:
        put_ours_in_place()
        for module in ("tests.tool_parsers.utils", "tests.reasoning.utils"):
            utils: Any = import_module(module)
            for name in ("run_tool_extraction_streaming", "run_reasoning_extraction_streaming"):
                if hasattr(utils, name):
                    setattr(utils, name, ending(getattr(utils, name)))


def pytest_configure(config: pytest.Config) -> None:
    path: Any = config.getoption("--outcomes")
    config.pluginmanager.register(Outcomes(path))


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[Any]) -> None:
    if config.getoption("--own-parsers"):
        return
    homes = {home for item in items for home in (item.module, item.cls) if home}
    for home in homes:
        for name in set(STREAM_HELPERS) & set(vars(home)):
            setattr(home, name, ending(vars(home)[name]))


@pytest.fixture(autouse=True)
def _usage(request: pytest.FixtureRequest) -> None:
    Usage.words = words_of(request.module)


@functools.cache
def words_of(module: ModuleType) -> tuple[str, ...]:
    """Return each word in the strings of a file of tests: the names of all tools that it calls are among them."""
    strings = (node.value for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Constant))
    words = (word for value in strings if isinstance(value, str) for word in _WORD.findall(value))
    names = (word.removeprefix("functions.").rstrip(".-") for word in words)
    return tuple(dict.fromkeys(filter(None, names)))


class Outcomes:
    """Writes how each test went: `passed`, `failed`, `xfailed`, `xpassed` or `skipped`, and whether it used ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        Usage.is_ours = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome: str = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xpassed" if report.passed else "xfailed"
        elif report.failed and str(report.longrepr).startswith("[XPASS(strict)]"):
            outcome = "xpassed"
        if report.when == "call" or outcome != "passed":
            self.found[report.nodeid] = {"outcome": outcome, "ours": Usage.is_ours}

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.found, indent=1), encoding="utf-8")

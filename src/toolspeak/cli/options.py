"""The options that several commands share: the choice of a model, the configuration file, and the prompt."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from toolspeak.engine.settings import OPTIONS, TurnOption

if TYPE_CHECKING:  # `--help` must not load these
    from pathlib import Path

    from toolspeak.config.shape import Config

F = TypeVar("F", bound=Callable[..., Any])

LARGEST_PROMPT: Final = 16 * 1024 * 1024
"""Bytes of a prompt on standard input."""
TOOLS_HELP: Final = (
    "Read tool definitions from this JSON file: an array of tools or a request with `tools`, in the format of any "
    "vendor, or an array of names."
)
_LINK: Final = re.compile(r"\[([^]]+)\]\([^)]+\)")


def _turn_option(option: TurnOption) -> tuple[str, str, str]:
    """Return the option of a setting of a turn: its declared help as plain text, with its choices and its default."""
    about = option.about
    text = _LINK.sub(r"\1", about.plain_help)
    default = about.otherwise or str(about.fallback)
    return f"--{option.name}", "|".join(option.choices) or "NAME", f"{text}  [default: {default}]".replace("`", "")


# Other settings are declared in `toolspeak.config`, which takes too long to load for `--help`. A test compares their
# texts here with the declarations.
_OPTIONS: Final = (
    ("--upstream", "URL", "Base URL of the model server, without the API path, such as http://127.0.0.1:8080/v1."),
    ("--wire", "NAME", "API of the upstream: openai_chat, openai_responses, anthropic, gemini or ollama."),
    ("--preset", "NAME", "Use a known upstream, such as ollama, groq or anthropic."),
    ("--model", "NAME", "Model to use when a request names no model that the upstream has."),
    *map(_turn_option, OPTIONS),
)
_ADDRESS: Final = (("--host", "ADDRESS", "Address to listen on.  [default: 127.0.0.1]"),)
_GUARDS: Final = (
    ("--key", "KEY", "API key that clients must send; it is safer in the variable TOOLSPEAK_KEY."),
    ("--probe", "DEPTH", "How deeply to probe models: off, look, tokens or full."),
    ("--unknown-models", "POLICY", "What to do with requests for models that no upstream has: first or strict."),
    ("--log", "FORM", "Format of the log: text or json.  [default: text]"),
)
_DRIVERS: Final = (
    ("--driver", "NAME", "How bytes travel from the upstream to the client: asgi or push.  [default: asgi]"),
)
_PLACE: Final = ("--upstream", "--wire", "--preset")
_WHERE: Final = (*_PLACE, "--model")
_NO_PROFILES: Final = "Ignore the profiles that `toolspeak doctor` has saved, and those that ship with toolspeak."


def upstream_options(command: F) -> F:
    """Add the options that choose the upstream, the model and the handling of tools."""
    return _with(_OPTIONS, _profiles_option(command))


def tool_options(command: F) -> F:
    """Add only the options for the handling of tools."""
    return _with([option for option in _OPTIONS if option[0] not in _WHERE], _profiles_option(command))


def place_options(command: F) -> F:
    """Add only the options that choose the upstream."""
    return _with([option for option in _OPTIONS if option[0] in _PLACE], command)


def gateway_options(command: F) -> F:
    """Add the options of a command that starts the gateway: address, key, probes, configuration file and log."""
    command = config_option(click.option("--quiet", is_flag=True, help="Log warnings and errors only.")(command))
    command = _with(_GUARDS, command)
    port = click.option("--port", type=int, metavar="N", help="Port to listen on; 0 picks a free one.  [default: 4141]")
    return _with(_ADDRESS, port(command))


def workers_option(command: F) -> F:
    """Add `--workers N`; the command gets 0 for `auto`."""
    text = "Number of processes that answer requests; auto means one for each usable core.  [default: 1]"
    return click.option("--workers", metavar="N|auto", callback=_worker_count, help=text)(command)


def driver_option(command: F) -> F:
    """Add `--driver NAME`."""
    return _with(_DRIVERS, command)


def _worker_count(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return the number of processes; raises `click.UsageError`. Its range is checked with the configuration."""
    if value is None or value == "auto":
        return None if value is None else 0
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor auto.", context, parameter) from None


def config_option(command: F) -> F:
    """Add `--config FILE`; the command gets it as `file`."""
    from pathlib import Path  # noqa: PLC0415 # `explain` needs this module, but no paths

    return click.option(
        "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Read this configuration file."
    )(command)


def json_option(command: F) -> F:
    """Add `--json`; the command gets it as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")(command)


def _profiles_option(command: F) -> F:
    return click.option("--no-profiles", "profiles", flag_value=False, default=None, help=_NO_PROFILES)(command)


def _with(options: Sequence[tuple[str, str, str]], command: F) -> F:
    for name, metavar, text in reversed(options):
        command = click.option(name, metavar=metavar, help=text, shell_complete=complete_values)(command)
    return command


def complete_values(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the values of an option that begin with what is typed, for completion in the shell."""
    del context
    return [value for value in _values(parameter) if value.startswith(typed)]


def _values(parameter: click.Parameter) -> Sequence[str]:
    """Return the fixed values of an option; none where any value is possible."""
    from toolspeak import dialects, upstreams, wires  # noqa: PLC0415 # `--help` must not load them
    from toolspeak.config.shape import Driver, LogForm, UnknownModels  # noqa: PLC0415
    from toolspeak.engine.verdict import Depth  # noqa: PLC0415

    named: dict[str, Callable[[], Sequence[str]]] = {
        "wire": wires.names,
        "preset": upstreams.names,
        "dialect": dialects.names,
        "probe": lambda: tuple(Depth),
        "unknown_models": lambda: tuple(UnknownModels),
        "log": lambda: tuple(LogForm),
        "driver": lambda: tuple(Driver),
    }
    choices = {option.name: option.choices for option in OPTIONS if option.choices}
    name = parameter.name or ""
    return choices.get(name) or named.get(name, tuple)()


def load_config(file: "Path | None", options: Mapping[str, Any]) -> "Config":
    """Load the configuration from file, environment and options, and print its warnings.

    If none of them names an upstream, model servers on this machine are looked for.
    """
    from toolspeak.config import Options, current, doubts, load  # noqa: PLC0415

    environ = current()
    given = Options(**options)
    config = load(file, environ, given)
    if not config.upstreams:
        from toolspeak.config.local import with_local  # noqa: PLC0415 # imports aiohttp

        config = with_local(config, given, environ)
    for doubt in (*doubts(config), *_unread_file(file, environ)):
        click.echo(f"toolspeak: warning: {doubt}", err=True)
    return config


def _unread_file(file: "Path | None", environ: Mapping[str, str]) -> list[str]:
    """Return a warning if the current folder has a configuration file that is not the one in use."""
    from pathlib import Path  # noqa: PLC0415

    from toolspeak.config.environment import FILE, config_file  # noqa: PLC0415

    here, used = Path(FILE).resolve(), config_file(file, environ)
    if not here.is_file() or (used is not None and used.resolve() == here):
        return []
    return [f"{FILE} in this folder is not read, so that no project decides where prompts go: pass --config {FILE}"]


def read_prompt(argument: str | None) -> str | None:
    """Return the prompt: the argument, or standard input if the argument is `-` or if text is piped in.

    None means that there is no argument and that standard input is a terminal. Raises `click.UsageError` for a prompt
    that is empty or too long.
    """
    if argument is None and sys.stdin.isatty():
        return None
    if argument in (None, "-"):
        text = _piped()
    else:
        # Python keeps invalid bytes of an argument as lone surrogates, which no JSON request can carry.
        text = argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("The prompt is empty. Pass it as an argument, or pipe it in.")
    return text


def _piped() -> str:
    body = sys.stdin.buffer.read(LARGEST_PROMPT + 1)
    if len(body) > LARGEST_PROMPT:
        raise click.UsageError(
            f"The prompt on standard input is longer than {LARGEST_PROMPT} bytes, which is the limit. Shorten it."
        )
    return body.decode("utf-8", "replace")

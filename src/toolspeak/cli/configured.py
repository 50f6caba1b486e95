"""The configuration that a command works with: file, environment, options, and what is found on this machine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:  # a command's help must not pay for the configuration
    from toolspeak.config.shape import Config

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    (
        "--upstream",
        "URL",
        "Where the model is: all before the paths of its protocol, such as http://127.0.0.1:8080/v1.",
    ),
    ("--wire", "NAME", "The protocol there: openai_chat, openai_responses, anthropic, gemini or ollama."),
    ("--preset", "NAME", "An upstream that is known by name, such as ollama, groq or anthropic."),
    ("--model", "NAME", "The model for names that the upstream does not know."),
    ("--mode", "MODE", "What to do with tools: auto, native first with fallback, force emulation, or off."),
    ("--dialect", "NAME", "How emulated calls are written."),
    ("--strategy", "NAME", "How calls are emulated: inline or decision."),
    ("--release", "NAME", "When calls leave: eager, checked or buffered."),
    ("--constraint", "NAME", "Where the server is told to keep emulated calls in form: off, retry, text or json."),
)


_PLACE = ("--upstream", "--wire", "--preset")
_WHERE = (*_PLACE, "--model")
_NO_PROFILES = "Leave out what `toolspeak doctor` has measured."


def upstream_options(command: F) -> F:
    """Add the options that say which model, and what to do with its tools."""
    command = click.option("--no-profiles", "profiles", flag_value=False, default=None, help=_NO_PROFILES)(command)
    return _with(_OPTIONS, command)


def tool_options(command: F) -> F:
    """Add only those that say what to do with tools."""
    command = click.option("--no-profiles", "profiles", flag_value=False, default=None, help=_NO_PROFILES)(command)
    return _with([option for option in _OPTIONS if option[0] not in _WHERE], command)


def place_options(command: F) -> F:
    """Add only those that say which upstream."""
    return _with([option for option in _OPTIONS if option[0] in _PLACE], command)


def _with(options: Sequence[tuple[str, str, str]], command: F) -> F:
    for name, metavar, text in reversed(options):
        command = click.option(name, metavar=metavar, help=text)(command)
    return command


def configured(file: Path | None, said: Mapping[str, Any]) -> "Config":
    """Read and check everything; look on this machine if no upstream is named."""
    from toolspeak.config import Options, current, doubts, load  # noqa: PLC0415
    from toolspeak.config.local import with_local  # noqa: PLC0415

    environ = current()
    options = Options(**said)
    config = load(file, environ, options)
    if not config.upstreams:
        config = with_local(config, options, environ)
    for doubt in doubts(config):
        click.echo(f"toolspeak: warning: {doubt}", err=True)
    return config

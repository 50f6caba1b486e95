"""Apps with the lines of docs/apps.md: the files, variables and commands of a section, as they are written there."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tests.clients import agents
from tests.clients.agents import Place, Start, program_of
from tests.clients.install import HERE
from tests.clients.pages import APPS, Section, filled, section
from toolspeak.cli.launch.agents import Recipe

CLIENTS = {
    "Open WebUI": "Open WebUI",
    "Vercel AI SDK": "Vercel ai, as on its page",
    "opencode": "opencode, opencode.json",
    "Continue": "Continue CLI, config.yaml",
    "Cline": "cline, after cline auth",
    "Aider": "aider, .aider.conf.yml",
}
"""The client of each section that is tried; the program for Vercel's SDK is on the page about JavaScript."""
UNTRIED = ("Zed",)
"""Apps that no package index has."""


def opencode(place: Place) -> Start:
    """Start opencode with its configuration file."""
    return _started("opencode", partial(agents.opencode, api="openai_chat"), place)


def continue_cli(place: Place) -> Start:
    """Start the command line of Continue with its configuration file."""
    return _started("Continue", agents.continue_cli, place)


def aider(place: Place) -> Start:
    """Start aider with its configuration file."""
    return _started("Aider", agents.aider, place)


def cline(place: Place) -> Start:
    """Start Cline after it was told where the gateway is."""
    start = _started("Cline", agents.cline, place)
    _, *words = section(APPS, "Cline").command("cline", "auth")
    first = shlex.join([program_of("cline", "cline"), *(filled(word, place.url, place.model) for word in words)])
    return replace(start, command=("sh", "-c", f'{first} && exec "$@"', "cline", *start.command))


def open_webui(place: Place) -> Start:
    """Start the server of Open WebUI, and send it a message as its page does."""
    told = section(APPS, "Open WebUI")
    program, *words = told.command("open-webui")
    server = (program_of("open-webui", program), *words)
    script = (program_of("open-webui", "python"), str(HERE / "python" / "open_webui.py"))
    quiet = {
        "DATA_DIR": str(place.home / "data"),
        "WEBUI_AUTH": "False",  # no account to make
        "WEBUI_SECRET_KEY": "secret",
        "ENABLE_OLLAMA_API": "False",
        "OFFLINE_MODE": "true",
        "RAG_EMBEDDING_ENGINE": "openai",  # by default it loads a model of its own
    }
    return Start((*script, place.model, place.prompt, *server), {**_recipe(told, place).env, **quiet})


def _started(title: str, start: Callable[[Place], Start], place: Place) -> Start:
    """Start an agent with the lines of its section, instead of those of `toolspeak launch`."""
    return start(replace(place, recipe=_recipe(section(APPS, title), place)))


def _recipe(told: Section, place: Place) -> Recipe:
    fill = partial(filled, url=place.url, model=place.model)
    env = {name: fill(value) for name, value in told.exports.items()}
    files = {place.home / name.removeprefix("~/"): fill(text) for name, text in told.files.items()}
    return Recipe(env, (), files)

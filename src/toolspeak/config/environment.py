"""Reads the environment. No other module does.

TOOLSPEAK_CONFIG is the path of the file. `Options` has the variables that override a setting of the file. Besides them
there are TOOLSPEAK_FORCE_EMULATION (the mode `force`), XDG_STATE_HOME (the folder of stored state), the keys of presets
(such as OPENAI_API_KEY), and OLLAMA_HOST.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from toolspeak import upstreams
from toolspeak.config.options import PREFIX, Options, option_problems, overrides, variable
from toolspeak.config.shape import MOST_PORT, MOST_WORKERS
from toolspeak.errors import BadConfig

FOLDER, FILE = "toolspeak", "toolspeak.toml"
_NETWORK = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE")
"""Variables of requests to upstreams, see `proxies.py`."""
_ORDER = ("ollama", "llamacpp", "lmstudio", "vllm", "sglang")
"""The order in which local servers are searched for."""
OLLAMA_PORT = "11434"
_DOCS = "see docs/coming-from.md"
CHAT = "chat"
AUTO = "auto"
FORCE = "force"
_PARSED = ("mode", "port", "workers", "profiles")
"""Options whose variables are not plain strings."""
_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
RENAMED = {
    "EMBEDDED_FORCE_TOOL_EMULATION": "FORCE_EMULATION",
    "TOOLSPEAK_EMULATION": "MODE",
    "TOOLSPEAK_FORCE_TOOL_EMULATION": "FORCE_EMULATION",
    "TOOLSPEAK_PROVIDER": "UPSTREAM",
    "TOOLSPEAK_TOOLS_EMULATION_MODE": "MODE",
    "TOOLSPEAK_TOOLS_MODE": "MODE",
}
"""Variables that people expect from other tools, and ours for the same thing.

Variables that goose and others read themselves (GOOSE_MODE) are not here: they may be set for those.
"""
_OLLAMA_HOST = re.compile(r"(?:(https?)://)?([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?/?")
# OLLAMA_HOST configures the server too, which may listen on all addresses; a client then connects to 127.0.0.1.
_ANY_ADDRESS = ("", "0.0.0.0", "[::]")  # noqa: S104 # only compared, never bound


def current() -> dict[str, str]:
    """Return a copy of the environment. All other functions take it as an argument, so tests need not change it."""
    return dict(os.environ)  # noqa: TID251 # the only place that reads it


def key_in(environ: Mapping[str, str], variable: str) -> str:
    """Return the key in a variable, without blanks around it: files and shells often add a line break."""
    return environ.get(variable, "").strip()


def config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: the given one, else that of TOOLSPEAK_CONFIG, else the user's if it exists.

    A file in the current folder is never read: a cloned project must not decide where prompts and keys go.
    """
    if path is not None:
        return path
    if named := environ.get(PREFIX + "CONFIG"):
        return _absolute(named)
    folder = _folder(environ, "XDG_CONFIG_HOME", ".config")
    found = folder / FILE if folder else None
    return found if found and found.is_file() else None


def profiles_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the doctor's profiles; None if the user has no home directory."""
    folder = state_folder(environ)
    return folder / "profiles" if folder else None


def approvals_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of approved tool definitions of MCP servers; None if the user has no home directory."""
    folder = _folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "mcp" if folder else None


def homes_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder with a HOME for each confined MCP server; None if the user has no home directory."""
    folder = _folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "mcp-homes" if folder else None


def workplaces_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of runs that work in a folder of their own; None if the user has no home directory."""
    folder = _folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "workplaces" if folder else None


def journal_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder that records running commands; None if the user has no home directory."""
    folder = _folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "sandbox" if folder else None


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of state that outlives a process; None if the user has no home directory."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state")


def _folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    """Return the folder `toolspeak` in the folder of an XDG variable, else in the usual one below the home directory.

    Relative values are ignored, as the XDG specification demands: they would mean another folder in each directory.
    """
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    folders = (environ.get(variable, ""), f"{home}/{usual}" if home else "")
    return next((Path(each) / FOLDER for each in folders if each and Path(each).is_absolute()), None)


def options_in(environ: Mapping[str, str]) -> Options:
    """Return the options that TOOLSPEAK_ variables set. An empty variable counts as unset. Raises `BadConfig`."""
    problems: list[str] = []
    plain = [name for name, target in overrides().items() if target.has_variable and name not in _PARSED]
    given = {name: environ.get(variable(name), "").strip() or None for name in plain}
    mode, chat = _mode(environ, problems)
    port, workers = _number(environ, "PORT", MOST_PORT, problems), _workers(environ, problems)
    profiles = _flag(environ, "PROFILES", problems)
    options = Options(**given, port=port, workers=workers, mode=mode, chat=chat, profiles=profiles)
    problems += option_problems(options, variable)
    if problems:
        raise BadConfig(*problems)
    return options


def known_variables() -> list[str]:
    """Return the names of all TOOLSPEAK_ variables that have an effect."""
    names = [variable(name) for name, target in overrides().items() if target.has_variable]
    return sorted({*names, PREFIX + "ADMIN_KEY", PREFIX + "CONFIG", PREFIX + "FORCE_EMULATION"})


def used_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that are set and may change the configuration; no values."""
    keys = (upstreams.load(name).key_env for name in upstreams.names())
    known = (*known_variables(), *sorted({key for key in keys if key}), "OLLAMA_HOST", "XDG_CONFIG_HOME", *_NETWORK)
    return [name for name in known if environ.get(name, "").strip()]


def renamed(environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable that is set and has no effect, with the one that has."""
    found = ((old, PREFIX + new) for old, new in RENAMED.items() if environ.get(old, "").strip())
    return [f"{old} has no effect: set {new} ({_DOCS})" for old, new in found]


def local_places(environ: Mapping[str, str]) -> list[str]:
    """Return the usual URLs of model servers on this machine, the likeliest first, for `local.detection.find_local`."""
    names = [name for name in upstreams.names() if upstreams.load(name).local]
    names.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    places = [upstreams.load(name).url.removesuffix("/v1") for name in names]
    return list(dict.fromkeys(each for each in (_ollama_url(environ), *places) if each))


def _ollama_url(environ: Mapping[str, str]) -> str:
    """Return the URL of Ollama by OLLAMA_HOST; empty if the variable is unset or malformed."""
    said = environ.get("OLLAMA_HOST", "").strip()
    found = _OLLAMA_HOST.fullmatch(said)
    if not said or not found:
        return ""
    scheme, host, port = found[1] or "http", found[2], found[3]
    usual = {"http": "80", "https": "443"}[scheme] if found[1] else OLLAMA_PORT
    return f"{scheme}://{'127.0.0.1' if host in _ANY_ADDRESS else host}:{port or usual}"


def _absolute(named: str) -> Path:
    path = Path(named)
    if not path.is_absolute():
        raise BadConfig(f"{PREFIX}CONFIG: {named!r} is not an absolute path; in each folder it would be another file")
    return path


def _number(environ: Mapping[str, str], name: str, most: int, problems: list[str]) -> int | None:
    said = environ.get(PREFIX + name, "").strip()
    if said.isascii() and said.isdecimal() and len(said) <= len(str(most)):
        return int(said)
    if said:
        problems.append(f"{PREFIX}{name}: {said!r} is not an integer from 0 to {most}")
    return None


def _workers(environ: Mapping[str, str], problems: list[str]) -> int | None:
    """Return the number of workers. `auto` is 0, as in the option."""
    said = environ.get(PREFIX + "WORKERS", "").strip().lower()
    return 0 if said == AUTO else _number(environ, "WORKERS", MOST_WORKERS, problems)


def _mode(environ: Mapping[str, str], problems: list[str]) -> tuple[str | None, bool | None]:
    """Return the mode and the chat switch. In the environment `chat` is a fifth mode (MODE-6)."""
    said = environ.get(PREFIX + "MODE", "").strip().lower()
    if not _flag(environ, "FORCE_EMULATION", problems):
        return (None, True) if said == CHAT else (said or None, None)
    if said not in ("", FORCE):
        forced = environ.get(PREFIX + "FORCE_EMULATION", "").strip().lower()
        problems.append(f"{PREFIX}MODE: {said!r} contradicts {PREFIX}FORCE_EMULATION={forced}")
    return FORCE, None


def _flag(environ: Mapping[str, str], name: str, problems: list[str]) -> bool | None:
    """Return the value of a switch; None if the variable is empty. A malformed value is added to `problems`."""
    said = environ.get(PREFIX + name, "").strip().lower()
    if said not in (*_YES, *_NO):
        problems.append(f"{PREFIX}{name}: {said!r} is not one of {', '.join((*_YES, *_NO[1:]))}")
    return said in _YES if said else None

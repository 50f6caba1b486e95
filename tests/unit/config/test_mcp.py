"""`[mcp.NAME]` of the file: what a server gets, and what is refused (RUN-4)."""

from pathlib import Path

import pytest

from toolspeak.config.file import load, parse_config
from toolspeak.config.mcp import server_named
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadConfig, BadField

ENVIRON = {"PATH": "/bin", "HOME": "/home/a", "TOKEN": "canary-7f3a", "OTHER": "x"}


def read(text: str) -> McpServer:
    (server,) = parse_config(text, "t.toml", ENVIRON).mcp
    return server


def problem(text: str) -> str:
    with pytest.raises(BadConfig) as found:
        read(text)
    return str(found.value)


def test_a_command_gets_the_path_and_what_is_named_run5() -> None:
    server = read('[mcp.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\nenv = ["HOME", "MISSING"]\nset = {A = "b"}')
    assert (server.name, server.command, server.args) == ("git", "uvx", ("mcp-server-git",))
    assert dict(server.env) == {"PATH": "/bin", "HOME": "/home/a", "A": "b"}
    assert server.missing == ("MISSING",)
    assert (server.trust, server.reads, server.tools) == (False, (), ())


def test_a_url_gets_its_headers_and_its_key_which_are_never_shown() -> None:
    server = read('[mcp.web]\nurl = "https://example.com/mcp"\nkey_env = "TOKEN"\nheaders = {X-Team = "blue"}')
    assert dict(server.headers) == {"x-team": "blue", "authorization": "Bearer canary-7f3a"}
    assert "canary" not in repr(server)
    assert "blue" not in repr(server)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mcp.a]", "mcp.a.command: one of command and url is needed"),
        ('[mcp.a]\ncommand = "x"\nurl = "http://a/"', "only one"),
        ('[mcp.a__b]\ncommand = "x"', "single _"),
        (f'[mcp.{"a" * 30}]\ncommand = "x"', "at most 24"),
        ('[mcp.a]\nurl = "http://u:p@a/"', "holds a user name"),
        ('[mcp.a]\ncommand = "x"\nenv = ["A=b"]', "'A=b' is not the name of a variable"),
        ('[mcp.a]\ncommand = "x"\nset = {"A b" = "c"}', "is not the name of a variable"),
        ('[mcp.a]\ncommand = "x"\ncwd = "here"', "'here' is not an absolute path"),
        ('[mcp.a]\ncommand = "x"\ntrusted = true', "did you mean 'trust'?"),
        ('[mcp.a]\nurl = "http://a/"\nheaders = {"a b" = "c"}', "is not the name of a header"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(text: str, said: str) -> None:
    assert said in problem(text)


def test_approvals_are_kept_in_the_user_s_state(tmp_path: Path) -> None:
    assert load(None, {"XDG_STATE_HOME": str(tmp_path)}).approvals == tmp_path / "toolspeak" / "mcp"
    assert load(None, {}).approvals is None


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(BadField, match=r"there is no \[mcp.files\] in the configuration"):
        server_named((), "files")
    with pytest.raises(BadField, match="'fils' is not one of files; did you mean 'files'"):
        server_named((McpServer("files"),), "fils")


# ---------------------------------------------------------------- what a command may reach


def test_a_command_is_confined_without_network_unless_said_run5() -> None:
    server = read('[mcp.a]\ncommand = "x"')
    assert (server.sandbox, server.network, server.folders, server.read) == (True, False, (), ())
    assert server.home == "/home/a/.local/state/toolspeak/mcp-homes/a"


def test_folders_are_of_the_user_and_the_network_is_declared_run5() -> None:
    server = read('[mcp.a]\ncommand = "x"\nnetwork = true\nfolders = ["~/notes", "/srv/b"]\nread = ["~/c"]')
    assert (server.folders, server.read, server.network) == (("/home/a/notes", "/srv/b"), ("/home/a/c",), True)
    assert not read('[mcp.a]\ncommand = "x"\nsandbox = false').sandbox


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('command = "x"\nfolders = ["notes"]', "'notes' is not an absolute path, nor one that begins with ~/"),
        ('command = "x"\nread = ["~"]', "'~' is not an absolute path"),
        ('command = "x"\nsandbox = false\nnetwork = true', "it has no effect with sandbox = false"),
        ('url = "http://a/"\nnetwork = true', "it is for a server with a command"),
        ('command = "x"\nsandbox = "no"', "mcp.a.sandbox"),
    ],
)
def test_a_confinement_that_means_nothing_is_said(text: str, said: str) -> None:
    assert said in problem(f"[mcp.a]\n{text}")

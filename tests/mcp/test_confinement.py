"""What a stdio server sees of the machine (RUN-5): its program, its interpreter, packages, and what is declared."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolspeak.agent.mcp.confinement import hint, program_paths, service_of
from toolspeak.config.shape import McpServer
from toolspeak.errors import McpFailed


def script(path: Path, first: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


def test_a_virtual_environment_brings_the_python_it_was_made_from(tmp_path: Path) -> None:
    base, venv = tmp_path / "python", tmp_path / "venv"
    python = script(base / "bin/python3")
    (base / "lib/python3.12").mkdir(parents=True)
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").mkdir()
    (venv / "secrets").mkdir()
    (venv / "pyvenv.cfg").write_text(f"home = {base}/bin\n")
    (venv / "bin/python").symlink_to(python)
    server = script(venv / "bin/server", f"#!{venv}/bin/python")
    found = program_paths(server, (), "")
    assert set(found) == {venv / "bin", venv / "lib", venv / "pyvenv.cfg", base / "bin", base / "lib"}


def test_a_program_of_npm_brings_its_packages_and_the_node_on_the_path(tmp_path: Path) -> None:
    node = script(tmp_path / "nvm/bin/node").parent
    packages = tmp_path / "project/node_modules"
    script(packages / "server/dist/index.js", "#!/usr/bin/env node")
    (packages / ".bin").mkdir()
    (packages / ".bin/server").symlink_to("../server/dist/index.js")
    assert set(program_paths(packages / ".bin/server", (), str(node))) == {packages, node}
    assert program_paths(node / "node", (str(packages / ".bin/server"),), str(node)) == (node, packages)


def test_of_a_home_only_the_program_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/bin/server` must not show `~`, nor `~/.local/bin/server` the keyrings in `~/.local/share`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = script(tmp_path / "bin/server")
    (tmp_path / "lib/python3.12").mkdir(parents=True)
    assert program_paths(mine, (), "") == (mine,)
    local = script(tmp_path / ".local/bin/server")
    (tmp_path / ".local/lib/python3.12").mkdir(parents=True)
    (tmp_path / ".local/share/keyrings").mkdir(parents=True)
    assert set(program_paths(local, (), "")) == {tmp_path / ".local/bin", tmp_path / ".local/lib"}


def test_programs_of_the_system_need_nothing_more() -> None:
    assert program_paths(Path("/bin/sh"), ("-c", "/etc"), "/bin") == ()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"folders": ("/nowhere/at/all",)}, "'/nowhere/at/all' of its folders and read: No such file"),
        ({"folders": ("/etc",)}, "is part of the system"),
        ({"folders": ("HOME",)}, "is your home, or holds it"),
        ({"read": ("HOME",)}, "is your home, or holds it"),
        ({"read": ("/",)}, "is your home, or holds it"),
        ({"command": "nowhere-at-all"}, "the command 'nowhere-at-all' is not found on the PATH"),
    ],
)
def test_what_may_not_be_shown_is_refused_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str | tuple[str, ...]], said: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    real = {name: (str(tmp_path),) if value == ("HOME",) else value for name, value in fields.items()}
    with pytest.raises(McpFailed, match=said):
        service_of(replace(McpServer("a", "/bin/sh"), **real))


def test_a_server_that_did_not_start_is_told_what_to_declare() -> None:
    assert "set network = true in [mcp.a]" in hint(McpServer("a", "npx"))
    assert "read, folders, network" in hint(McpServer("a", "npx", network=True))
    assert hint(McpServer("a", "npx", sandbox=False)) == hint(McpServer("a", url="http://a/")) == ""

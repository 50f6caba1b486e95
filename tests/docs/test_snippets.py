"""Every block of code in the pages is at least valid: shell, JSON, YAML and JavaScript parse, TOML loads.

Pages whose Python runs have a test of their own; those of the tutorials run here, with `toolspeak.testing`.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.snippets import commands, python_lines
from toolspeak.config.file import parse_config

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONFIGURED = ("keys.md", "tls.md", "first-durable-run.md", "javascript.md")
"""Pages whose TOML blocks are whole configuration files."""
RUNS = ("emulation.md",)
"""Pages whose Python blocks run by themselves; the other pages have a test beside the code that they are about."""
SIGNATURES = "api.md"
"""The page whose Python blocks are signatures and types."""
LANGUAGES = {"sh", "toml", "json", "yaml", "python", "js", "console", "text", "ini", "dockerfile", "mermaid"}
AUTHORITY = "/etc/ssl/company.pem"
"""A file of certificates that pages name. A configuration that names one loads only if it is there."""
PAIR = {"/etc/toolspeak/tls.crt": "company.pem", "/etc/toolspeak/tls.key": "key.pem"}
"""The same for a certificate and its key."""
KEYS = {"ANA_KEY": "a" * 32, "TEAM_KEY": "b" * 32}


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def definition(signature: str) -> str:
    """Return a signature as the code that it stands for; `Name = type` is code already."""
    text = signature.strip().replace("…", "...")
    return text if re.match(r"\w+ = ", text) else f"def {text}: pass"


def parse_shell(text: str) -> None:
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, ""), text


def parse_javascript(text: str) -> None:
    command = ["node", "--check", "--input-type=module", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_valid(page: Path) -> None:
    yaml: Any = importlib.import_module("yaml")
    text = page.read_text(encoding="utf-8")
    assert {name for name, _ in BLOCK.findall(text)} <= LANGUAGES
    for command in [*blocks(page, "sh"), *(command.text for command in commands(text))]:
        parse_shell(command)
    for block in blocks(page, "toml"):
        tomllib.loads(block)
    for block in blocks(page, "json"):
        json.loads(block)
    for block in blocks(page, "yaml"):
        assert yaml.safe_load(block)
    for block in blocks(page, "js"):
        parse_javascript(block)
    for block in blocks(page, "python"):
        ast.parse(definition(block) if page.name == SIGNATURES else block)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate."""
    folder = tmp_path_factory.mktemp("tls")
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=company")
    files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "company.pem"))
    subprocess.run([*command, *files], check=True, capture_output=True)
    return folder / "company.pem"


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_configurations_load(name: str, authority: Path) -> None:
    found = blocks(ROOT / "docs" / name, "toml")
    assert found
    for block in found:
        for path, file in PAIR.items():
            block = block.replace(path, str(authority.parent / file))  # noqa: PLW2901
        assert parse_config(block.replace(AUTHORITY, str(authority)), name, KEYS).warnings == ()


@pytest.mark.parametrize("name", RUNS)
def test_the_python_of_the_page_runs(name: str) -> None:
    lines = python_lines((ROOT / "docs" / name).read_text(encoding="utf-8"))
    assert sum(line.startswith("assert ") for line in lines) >= 3
    script = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")

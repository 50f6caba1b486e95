"""The page about LiteLLM: `just hosts` executes its lines, and the names in them exist."""

import ast
import re
from pathlib import Path

from tests.hosts.run import HERE, SCRIPTS
from tests.hosts.run import ROOT as HOSTS_ROOT
from toolspeak import integrations

PAGE = (HOSTS_ROOT / "docs" / "litellm.md").read_text(encoding="utf-8")
MODULE = Path(integrations.__path__[0]) / "litellm.py"


def blocks() -> set[tuple[str, str]]:
    """Return heading and language of each block that is not a shell command."""
    sections = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)[1:]
    return {
        (heading, language)
        for heading, text in zip(sections[::2], sections[1::2], strict=True)
        for language in re.findall(r"^```(\w+)$", text, re.MULTILINE)
        if language != "sh"
    }


def defined() -> set[str]:
    """Return the names that the module defines; it cannot be loaded here, without LiteLLM."""
    body = ast.parse(MODULE.read_text(encoding="utf-8")).body
    assigned = {ast.unparse(node.target) for node in body if isinstance(node, ast.AnnAssign)}
    return assigned | {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_just_hosts_executes_each_block_of_the_page() -> None:
    scripts = "".join((HERE / "python" / f"{name}.py").read_text(encoding="utf-8") for name in SCRIPTS["hosts-openai2"])
    assert blocks() == {("LiteLLM SDK", "python"), ("LiteLLM proxy", "yaml"), ("Choose the model server", "yaml")}
    assert all(f'"{heading}"' in scripts or f"'{heading}'" in scripts for heading, _ in blocks())


def test_the_names_on_the_page_exist() -> None:
    named = set(re.findall(r"toolspeak\.integrations\.litellm(?: import |\.)(\w+)", PAGE))
    assert named == {"provider", "handler"}
    assert named <= defined()

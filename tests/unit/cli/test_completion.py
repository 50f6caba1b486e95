"""Completion in real shells, by the lines of docs/cli.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = str(Path(sys.executable).parent)
BASH = """
source <(_TOOLSPEAK_COMPLETE=bash_source toolspeak)
COMP_WORDS=(@LINE@); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_toolspeak_completion toolspeak
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compdef() {}
compadd() { print -l -- $completions }
_describe() { print -l -- ${completions_with_descriptions%%:*} }
eval "$(_TOOLSPEAK_COMPLETE=zsh_source toolspeak)"
words=(@LINE@); CURRENT=${#words}
_toolspeak_completion
"""
FISH = """
_TOOLSPEAK_COMPLETE=fish_source toolspeak | source
complete -C '@LINE@'
"""
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completed(shell: str, line: str, home: Path) -> set[str]:
    script = SHELLS[shell].replace("@LINE@", line)
    environ = {"PATH": os.pathsep.join((PROGRAMS, "/usr/bin", "/bin")), "HOME": str(home), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [shell, "-c", script], env=environ, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True
    )
    return {found.partition("\t")[0] for found in done.stdout.splitlines() if found}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_options_and_values(shell: str, tmp_path: Path) -> None:
    assert completed(shell, "toolspeak run", tmp_path) == {"run", "runs"}
    assert completed(shell, "toolspeak serve --ups", tmp_path) == {"--upstream"}
    assert completed(shell, "toolspeak serve --release ch", tmp_path) == {"checked"}
    assert completed(shell, "toolspeak chat --dialect llama_j", tmp_path) == {"llama_json"}
    assert completed(shell, "toolspeak config sch", tmp_path) == {"schema"}
    assert completed(shell, "toolspeak launch cod", tmp_path) == {"codex"}


def test_the_page_names_the_line_of_each_shell() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert {*re.findall(r"_TOOLSPEAK_COMPLETE=(\w+)_source toolspeak", page)} == {*SHELLS}

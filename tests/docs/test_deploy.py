"""The unit and the container file of docs/deploy.md are valid, and start what is there."""

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
INSTRUCTION = re.compile(r"^(FROM|RUN|USER|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) (.+)$")
PROGRAM = "/opt/toolspeak/bin/toolspeak"


def block(language: str) -> str:
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return text


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment] # systemd's names are in mixed case
    parser.read_string(block("ini"))
    return parser


def test_the_unit_starts_the_gateway_with_its_credential() -> None:
    service = unit()["Service"]
    program, *arguments = service["ExecStart"].split()
    assert program == PROGRAM
    assert arguments == ["serve", "--config", "%d/toolspeak.toml"]
    assert service["LoadCredential"].partition(":")[0] == "toolspeak.toml"
    assert int(service["TimeoutStopSec"]) > 60
    command = [sys.executable, "-m", "toolspeak", arguments[0], "--help"]
    assert "--config FILE" in subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:  # not on macOS, nor in most containers: the test above checks the parts
        return
    path = tmp_path / "toolspeak.service"
    path.write_text(block("ini").replace(PROGRAM, sys.executable))
    done = subprocess.run([program, "verify", str(path)], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if path.name in line]) == (0, [])


def test_the_container_file_has_known_instructions_and_commands() -> None:
    found = [INSTRUCTION.match(line) for line in block("dockerfile").splitlines()]
    assert all(found)
    parts = {match[1]: match[2] for match in found if match}
    assert json.loads(parts["ENTRYPOINT"]) == ["toolspeak"]
    assert json.loads(parts["CMD"]) == ["serve", "--host", "0.0.0.0"]  # noqa: S104 # inside a container
    python, option, script = json.loads(parts["HEALTHCHECK"].removeprefix("CMD "))
    assert (python, option) == ("python", "-c")
    compile(script, "healthcheck", "exec")

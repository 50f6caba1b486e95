"""The unit of docs/deploy.md is valid and starts what is there, and its container runs as the image's check runs it."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.image.run import CONFINED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
MOST_EXPOSED = 15
"""Tenths of systemd's points that the unit may have; a unit without any restriction has 96."""
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


def test_the_page_shows_the_unit_of_the_repository() -> None:
    assert block("ini") == (ROOT / "deploy" / "toolspeak.service").read_text(encoding="utf-8")


def test_the_unit_is_confined(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:  # as above: the names of the restrictions are checked below all the same
        assert {"NoNewPrivileges", "ProtectSystem", "SystemCallFilter"} <= set(unit()["Service"])
        return
    path = tmp_path / "toolspeak.service"
    path.write_text(block("ini").replace(PROGRAM, sys.executable))
    command = [program, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout


def test_the_container_of_the_page_is_as_confined_as_the_one_that_is_checked() -> None:
    shown = re.sub(r"\\\n\s*", "", PAGE)
    [command] = re.findall(r"^podman run .+$", shown, re.MULTILINE)
    assert " ".join(CONFINED) in command
    assert ":/var/lib/toolspeak " in command


def test_chart_compose_file_and_page_have_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = (ROOT / "charts" / "toolspeak" / "Chart.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^(?:appVersion|version): (.+)$", chart, re.MULTILINE) == [version, version]
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"toolspeak-runs:([\d.]+)", compose)) == {version}
    assert set(re.findall(r"^ +toolspeak:([\d.]+)$", PAGE, re.MULTILINE)) == {version}

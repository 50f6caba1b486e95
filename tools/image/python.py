"""The Python part of the image: the wheel and its pinned dependencies, stripped and compiled."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.image.debian import PYTHON

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES_FOLDER: Final = f"usr/local/lib/python{PYTHON}/dist-packages"
PLATFORM: Final = f"{platform.machine()}-manylinux_2_28"
INSTALLER_NOTES: Final = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files in which the installer notes its own name, a path of this machine and the time."""
NOT_RUN: Final = ("*.c", "*.cpp", "*.h", "*.hpp", "*.pxd", "*.pyi", "*.pyx")
"""Sources that wheels ship for compilers and type checkers."""
_SCRIPT: Final = f"""#!/usr/bin/python{PYTHON}
import sys

from toolspeak.cli import main

sys.exit(main())
"""


def requirement_files(extras: Sequence[str]) -> list[Path]:
    """Return the files that pin toolspeak's dependencies and those of the extras."""
    folder = ROOT / "requirements"
    return [folder / "runtime.txt", *(folder / "extras" / f"{extra}.txt" for extra in extras)]


def install(wheel: Path, extras: Sequence[str], root: Path) -> None:
    """Install the wheel and its dependencies into a root, each dependency checked against its hashes."""
    target = root / PACKAGES_FOLDER
    # Copies: the files are stripped below, and with hard links that would change uv's cache and all its users.
    command = [str(ROOT / ".venv/bin/uv"), "pip", "install", "--quiet", "--link-mode", "copy", "--target", str(target)]
    command += ["--python-version", PYTHON, "--python-platform", PLATFORM, "--only-binary", ":all:", "--no-deps"]
    pins = [option for path in requirement_files(extras) for option in ("--requirement", str(path))]
    subprocess.run([*command, "--require-hashes", *pins], check=True)
    subprocess.run([*command, str(wheel)], check=True)
    for name in INSTALLER_NOTES:
        for path in target.glob(f"*.dist-info/{name}"):
            path.unlink()
    for name in ("bin", "include"):
        shutil.rmtree(target / name, ignore_errors=True)
    script = root / "usr/local/bin/toolspeak"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_SCRIPT, encoding="ascii")
    script.chmod(0o755)


def shrink(root: Path) -> None:
    """Remove debugging symbols, tests and sources: a third of the dependencies.

    Libraries in `NAME.libs` stay as they are: auditwheel has moved their sections, and `strip` breaks such files.
    """
    folder = root / PACKAGES_FOLDER
    for tests in (*folder.glob("*/tests"), *folder.glob("google/protobuf/testdata")):
        shutil.rmtree(tests)
    for pattern in NOT_RUN:
        for path in folder.rglob(pattern):
            path.unlink()
    libraries = [str(path) for path in folder.rglob("*.so") if not re.search(r"\.libs/", str(path))]
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)
    for record in folder.glob("*.dist-info/RECORD"):
        _correct(record, folder)


def _correct(record: Path, folder: Path) -> None:
    """Remove missing files, and the hashes of stripped files, from a list of installed files."""
    lines: list[str] = []
    for line in record.read_text(encoding="utf-8").splitlines():
        name = line.rsplit(",", 2)[0]
        if (folder / name.strip('"')).exists():
            lines.append(f"{name},," if name.endswith(".so") else line)
    record.write_text("\n".join([*lines, ""]), encoding="utf-8")


def compile_all(root: Path) -> None:
    """Compile every module: with a read-only root, Python would compile all of them again at each start.

    The root's own Python does it, started by the root's own loader: no chroot, and so no privilege. The files have no
    time stamp, so that two builds of one commit are alike.
    """
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    loader = next((root / "usr/lib64").glob("ld-linux-*"), None) or next((root / "usr/lib").glob("ld-linux-*"))
    program = [str(loader), "--library-path", str(libraries), str(root / f"usr/bin/python{PYTHON}"), "-S"]
    environment = {**os.environ, "PYTHONHOME": str(root / "usr")}
    options = ["-m", "compileall", "-q", "-j", "1", "--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/"]
    folders = [str(root / f"usr/lib/python{PYTHON}"), str(root / PACKAGES_FOLDER)]
    subprocess.run([*program, *options, *folders], env=environment, check=True)

"""`just image`: build the container image, without a registry and without a container engine.

    python -m tools.image [--extras redis,otel] [--name toolspeak] WHEEL

Needs mmdebstrap, buildah and binutils; apt has them. The image goes to the storage that buildah and podman share, and
as an archive to build/image, with its bill of materials beside it; `podman load` and `docker load` take the archive.
Two builds of one commit with the same Debian packages give the same layer, bit by bit.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from testkit.report import close
from tools.image import debian, python, sbom

FOLDER: Final = python.ROOT / "build" / "image"
LARGEST: Final = 120_000_000
"""Bytes of the unpacked image that the default extras may have."""
EXTRAS: Final = ("redis", "otel")
PORT: Final = 4141
STATE: Final = "/var/lib"
_HEALTH: Final = f'import urllib.request; urllib.request.urlopen("http://127.0.0.1:{PORT}/health", timeout=3)'
# `CMD`, not `CMD-SHELL`: the image has no shell that could run a line.
HEALTHCHECK: Final = ("CMD", "/usr/bin/python3", "-c", _HEALTH)
VARIABLES: Final = {
    "HOME": f"{STATE}/toolspeak",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "XDG_STATE_HOME": STATE,
}


def size_of(root: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.lstat().st_size for path in root.rglob("*") if path.is_symlink() or path.is_file())


def build_root(wheel: Path, extras: Sequence[str], root: Path, scratch: Path) -> int:
    """Fill the root folder of the image, and return how many components it has."""
    root.mkdir(parents=True)
    debian.unpack(debian.download(scratch), root)
    python.install(wheel, extras, root)
    python.shrink(root)
    python.compile_all(root)
    return sbom.write(root, root / sbom.PLACE, FOLDER / "toolspeak.cdx.json")


def commit(root: Path, state: Path, name: str, version: str, archive: Path) -> None:
    """Make the image: one layer of files that belong to root, and a separate folder for the user."""
    (state / "toolspeak").mkdir(parents=True)  # `buildah copy` changes the owner of a folder's files, not of the folder
    container = _buildah("from", "--format", "docker", "scratch")
    try:
        _buildah("copy", "--quiet", "--chown", "0:0", container, str(root), "/")
        user = f"{debian.USER}:{debian.USER}"
        _buildah("copy", "--quiet", "--chown", user, "--chmod", "0700", container, str(state), STATE)
        variables = [option for pair in VARIABLES.items() for option in ("--env", "=".join(pair))]
        _buildah(
            "config",
            *("--user", user, "--workingdir", f"{STATE}/toolspeak", "--port", str(PORT), "--stop-signal", "SIGTERM"),
            *("--entrypoint", json.dumps(["toolspeak"]), "--cmd", "serve --host 0.0.0.0"),
            *("--healthcheck", shlex.join(HEALTHCHECK), "--healthcheck-interval", "30s"),
            *("--healthcheck-timeout", "5s", "--healthcheck-start-period", "10s"),
            *("--label", f"org.opencontainers.image.version={version}"),
            *("--label", "org.opencontainers.image.licenses=Apache-2.0"),
            *("--label", "org.opencontainers.image.title=toolspeak"),
            *variables,
            container,
        )
        # Docker's format, because OCI's has no health check.
        stamp = ("--timestamp", _commit_time())
        _buildah("commit", "--quiet", "--format", "docker", *stamp, container, f"localhost/{name}:{version}")
        archive.unlink(missing_ok=True)
        _buildah("push", "--quiet", f"localhost/{name}:{version}", f"docker-archive:{archive}:{name}:{version}")
    finally:
        _buildah("rm", container)


def _commit_time() -> str:
    """Return the time of the built commit, in the format of SOURCE_DATE_EPOCH."""
    command = ["git", "log", "-1", "--format=%ct"]
    said = subprocess.run(command, cwd=python.ROOT, check=True, capture_output=True, text=True).stdout.strip()
    return os.environ.get("SOURCE_DATE_EPOCH", said)


def _buildah(*arguments: str) -> str:
    done = subprocess.run(["buildah", *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="just image")
    parser.add_argument(
        "--extras", default=",".join(EXTRAS), help="extras of toolspeak to install (default: %(default)s)"
    )
    parser.add_argument("--name", default="toolspeak", help="name of the image (default: %(default)s)")
    parser.add_argument("wheel", type=Path)
    options = parser.parse_args(arguments)
    missing = [name for name in ("mmdebstrap", "buildah", "strip") if shutil.which(name) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}. Install them: apt-get install mmdebstrap buildah binutils")
    extras = [extra for extra in options.extras.split(",") if extra]
    version = options.wheel.name.split("-")[1]
    FOLDER.mkdir(parents=True, exist_ok=True)
    root, archive = FOLDER / "root", FOLDER / f"{options.name}-{version}.tar"
    shutil.rmtree(root, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="toolspeak-image-") as scratch:
        components = build_root(options.wheel, extras, root, Path(scratch))
        commit(root, Path(scratch, "state"), options.name, version, archive)
    size = size_of(root)
    figures = {"extras": extras, "bytes": size, "archive_bytes": archive.stat().st_size, "components": components}
    close("image", ok=size < LARGEST or set(extras) > set(EXTRAS), image=f"{options.name}:{version}", **figures)


if __name__ == "__main__":
    main(sys.argv[1:])

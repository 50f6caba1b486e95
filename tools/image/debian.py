"""The Debian part of the image: the C library, Python and what it loads, certificates and time zones.

mmdebstrap finds the packages and their dependencies and downloads them with apt, which checks their signatures. The
packages are then unpacked without their maintainer scripts, as distroless images do: the image has no shell, no package
manager and no program but Python.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

SUITE: Final = "trixie"
PYTHON: Final = "3.13"
"""The Python of the suite, and so of the image."""
PACKAGES: Final = (
    "base-files",
    "ca-certificates",
    f"libpython{PYTHON}-stdlib",
    "libstdc++6",
    f"python{PYTHON}-minimal",
    "tzdata",
)
ONLY_FOR_SCRIPTS: Final = frozenset({"debconf", "mawk", "openssl", "openssl-provider-legacy", "readline-common"})
"""Dependencies of maintainer scripts and of terminals, which the image does not have."""
LEFT_OUT: Final = (
    "usr/bin/[!p]*",
    "usr/lib/*-linux-gnu/gconv",
    f"usr/lib/python{PYTHON}/ensurepip",
    f"usr/lib/python{PYTHON}/pydoc_data",
    f"usr/lib/python{PYTHON}/test",
    "usr/share/bug",
    "usr/share/doc/*/[!c]*",
    "usr/share/doc/*/changelog*",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/pixmaps",
    "usr/sbin/*",
)
"""Files of the packages that the image does not need. The copyright files stay: their licences ask for it."""
USER: Final = 65532
"""The user of the gateway: the number that distroless images use, so that policies know it."""
_ACCOUNTS: Final = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\ntoolspeak:x:{USER}:{USER}::/var/lib/toolspeak:/sbin/nologin\n",
    "etc/group": f"root:x:0:\ntoolspeak:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def download(folder: Path) -> list[Path]:
    """Download the packages and their dependencies, and return their files. Raises CalledProcessError if apt fails."""
    command = ["mmdebstrap", "--quiet", "--variant=extract", "--skip=cleanup/apt/cache"]
    target = folder / "mmdebstrap"
    subprocess.run([*command, f"--include={','.join(PACKAGES)}", SUITE, str(target)], check=True)
    found = sorted((target / "var/cache/apt/archives").glob("*.deb"))
    return [each for each in found if field_of(each, "Package") not in ONLY_FOR_SCRIPTS]


def field_of(package: Path, name: str) -> str:
    """Return a field of a package's control file."""
    command = ["dpkg-deb", "--field", str(package), name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def unpack(packages: list[Path], root: Path) -> None:
    """Unpack the packages into a root, except the excluded files, and write what their scripts would have written."""
    # base-files first: it has the links /lib and /lib64, and a folder in their place would stay one
    for package in sorted(packages, key=lambda path: not path.name.startswith("base-files_")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
    for pattern in LEFT_OUT:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, text in _ACCOUNTS.items():
        (root / name).write_text(text, encoding="ascii")
    (root / "usr/bin/python3").unlink(missing_ok=True)
    (root / "usr/bin/python3").symlink_to(f"python{PYTHON}")
    _write_certificates(root)
    _write_package_list(packages, root)


def _write_certificates(root: Path) -> None:
    """Write the bundle of authorities as update-ca-certificates does, and the link that leads OpenSSL to it.

    The link is part of the package of the program `openssl`, which the image does not have: without it, Python trusts
    no authority, and every https upstream fails.
    """
    folder = root / "usr/share/ca-certificates"
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(path.read_bytes().rstrip() + b"\n" for path in sorted(folder.rglob("*.crt"))))
    shutil.rmtree(folder)
    for name, target in {"cert.pem": "ca-certificates.crt", "certs": ""}.items():
        link = root / "usr/lib/ssl" / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(f"/etc/ssl/certs/{target}")


def _write_package_list(packages: list[Path], root: Path) -> None:
    """Write one file for each package, where scanners for known vulnerabilities look in an image without dpkg."""
    folder = root / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True)
    for package in packages:
        control = subprocess.run(["dpkg-deb", "--field", str(package)], check=True, capture_output=True).stdout
        (folder / field_of(package, "Package")).write_bytes(control)

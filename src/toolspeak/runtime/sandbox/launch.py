"""The last steps before bubblewrap, in a process of their own: a program, not a module; it imports nothing of ours.

It reads what to do from standard input (see `bwrap.py`), sets limits, and becomes bubblewrap. If it is root it becomes
somebody without rights first: root's limits on processes do not bind, and whatever broke out would be root. So that
this stranger may work in the folder, it is mounted with its owner mapped to them: what they make is the owner's.
"""

import ctypes
import json
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterator
from typing import Any, Final, NoReturn

FAILED: Final = 125
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PARENT_DEATH: Final = 1
_HERE: Final = -100
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000
_NOSUID, _NODEV, _RECURSIVE, _PRIVATE = 0x2, 0x4, 0x4000, 0x40000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE_TREE, _EMPTY_PATH, _FROM_EMPTY_PATH = 0x80001, 0x1000, 0x4
_IDMAP: Final = 0x100000
_PLACE: Final = "/tmp"  # noqa: S108 # in a mount namespace of our own
_FOLDER: Final = f"{_PLACE}/folder"
_OWN: Final = ("toolspeak.toml", ".toolspeak")
"""Configuration of ours that may lie in a project: to be read, not written."""


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users")]


def main() -> NoReturn:
    """Do what standard input says."""
    plan: dict[str, Any] = json.load(sys.stdin)  # noqa: TID251 # ours, and nothing else can be imported here
    try:
        _tie(plan["parent"])
        _become(plan)
    except OSError as error:
        os.write(2, f"the sandbox could not be made: {error.strerror}: {error.filename or ''}\n".encode())
        os._exit(FAILED)


def _tie(parent: int) -> None:
    """Die with the one who started us; bubblewrap says so too, but only later, and only to a parent that lives."""
    _LIBC.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(FAILED)


def _become(plan: dict[str, Any]) -> NoReturn:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for path in plan["cgroups"]:
        _write(path, "0")
    _write("/proc/self/oom_score_adj", "1000")
    source = plan["folder"]
    if plan["user"] is not None:
        source = _mapped(source, plan["user"])
        _drop(plan["user"])
        _tie(plan["parent"])  # who becomes somebody else is untied
    for name, most in plan["limits"].items():
        _limit(getattr(resource, name), most)
    folder = os.open(source, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    binds = [*_bind("--bind-fd", folder, plan["folder"]), *_protected(folder, plan["folder"])]
    data = [word for path, text in plan["files"].items() for word in ("--ro-bind-data", _memory(text.encode()), path)]
    seccomp = ["--seccomp", _memory(bytes.fromhex(plan["seccomp"]))]
    os.execve(plan["bwrap"], [plan["bwrap"], *plan["before"], *data, *binds, *seccomp, *plan["after"]], {})  # noqa: S606


def _limit(which: int, most: int) -> None:
    """Set a limit, unless a lower one is set already."""
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


# ---------------------------------------------------------------- what may be read only


def _protected(folder: int, path: str) -> Iterator[str]:
    """Shut what git and we obey: hooks and configuration. A folder that is a mount cannot be moved aside either."""
    for name in _OWN:
        yield from _shut(folder, name, path)
    git = _opened(folder, ".git")
    if git is None:
        return
    if not stat.S_ISDIR(os.fstat(git).st_mode):
        yield from _bind("--ro-bind-fd", git, f"{path}/.git")
        return
    yield from _bind("--bind-fd", git, f"{path}/.git")
    if _opened(git, "hooks") is None:
        os.mkdir("hooks", dir_fd=os.open(".", os.O_RDONLY, dir_fd=git))
    for name in ("hooks", "config"):
        yield from _shut(git, name, f"{path}/.git")


def _shut(folder: int, name: str, path: str) -> list[str]:
    found = _opened(folder, name)
    return [] if found is None else _bind("--ro-bind-fd", found, f"{path}/{name}")


def _opened(folder: int, name: str) -> int | None:
    """Open a path, but no symbolic link: a command may have made it, and it may lead anywhere."""
    try:
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return None
    return None if stat.S_ISLNK(os.fstat(found).st_mode) else found


def _bind(how: str, descriptor: int, path: str) -> list[str]:
    os.set_inheritable(descriptor, True)  # noqa: FBT003 # it has no name
    return [how, str(descriptor), path]


def _memory(data: bytes) -> str:
    descriptor = os.memfd_create("data", 0)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return str(descriptor)


# ---------------------------------------------------------------- root becomes a stranger


def _mapped(folder: str, user: int) -> str:
    """Mount the folder for another user, where only we see it; return where."""
    owner = os.stat(folder)  # noqa: PTH116 # pathlib takes longer to load than all this
    users = _user_namespace(f"{owner.st_uid} {user} 1\n", f"{owner.st_gid} {user} 1\n")
    tree = _call("open_tree", _LIBC.syscall(_OPEN_TREE, _HERE, folder.encode(), _CLONE_TREE), folder)
    want = _Attributes(_IDMAP | _NOSUID | _NODEV, 0, 0, users)
    size = ctypes.sizeof(want)
    _call("idmapped mount", _LIBC.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH, ctypes.byref(want), size), folder)
    _call("unshare", _LIBC.unshare(_NEW_MOUNTS), "mounts")
    _call("mount", _LIBC.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "/")
    _call("mount", _LIBC.mount(b"tmpfs", _PLACE.encode(), b"tmpfs", _NOSUID | _NODEV, b"size=64k,mode=755"), _PLACE)
    os.mkdir(_FOLDER)  # noqa: PTH102 # as above
    _call("move_mount", _LIBC.syscall(_MOVE_MOUNT, tree, b"", _HERE, _FOLDER.encode(), _FROM_EMPTY_PATH), _FOLDER)
    return _FOLDER


def _user_namespace(users: str, groups: str) -> int:
    """Make a namespace with these maps; a child holds it until it is open."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, b"y" if _LIBC.unshare(_NEW_USERS) == 0 else b"n")
        signal.pause()
    try:
        if os.read(ready, 1) != b"y":
            raise PermissionError(1, "user namespaces are not allowed", "unshare")
        _write(f"/proc/{child}/uid_map", users)
        _write(f"/proc/{child}/gid_map", groups)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _drop(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _call(what: str, result: int, path: str) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}", path)
    return result


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    main()

"""Starts the sandbox program in a process that the guard has forked. This module imports nothing else of toolspeak.

`start_bwrap` takes a plan (see `bwrap.py` and `guard.py`), sets limits, and replaces itself with bubblewrap. If it
runs as root, it drops to an unprivileged user first: the kernel does not apply process limits to root (with
RLIMIT_NPROC set, all of 300 forks succeeded), and a process that escaped would be root. For this user the folder is
mounted with its owner mapped to the user (an idmapped mount). New files belong to the owner of the folder.

`start_sandlock` runs sandlock in this process. Sandlock has no process namespace, so processes that a command leaves
running would survive. The guard kills them: as a subreaper it adopts every process that loses its parent.
"""

import ctypes
import errno
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, NoReturn

FAILED: Final = 125
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PARENT_DEATH: Final = 1
_HERE: Final = -100
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000
_READ_ONLY, _NOSUID, _NODEV, _RECURSIVE, _PRIVATE = 0x1, 0x2, 0x4, 0x4000, 0x40000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE_TREE, _EMPTY_PATH, _FROM_EMPTY_PATH = 0x80001, 0x1000, 0x4
_IDMAP: Final = 0x100000
_PLACE: Final = "/tmp"  # noqa: S108 # in a mount namespace of our own


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users")]


def start_bwrap(plan: dict[str, Any]) -> NoReturn:
    """Execute bubblewrap as the plan says. On an error, write it to stderr and exit with status 125."""
    try:
        _tie(plan["parent"])
        _become(plan)
    except OSError as error:
        os.write(2, f"the sandbox could not be made: {error.strerror}: {error.filename or ''}\n".encode())
        os._exit(FAILED)


def _tie(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies.

    `--die-with-parent` of bubblewrap takes effect only once bubblewrap runs, and only if the parent still lives then.
    """
    _LIBC.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(FAILED)


def _become(plan: dict[str, Any]) -> NoReturn:
    # The order matters: joining control groups and mounting need root, so they come before the change of user. Nothing
    # of the command has run until then.
    for path in plan["cgroups"]:
        _write(path, "0")
    # If the machine runs out of memory, the kernel kills the command first. A command cannot lower the score again.
    _write("/proc/self/oom_score_adj", "1000")
    sources = [path for path, _ in plan["binds"]]
    if plan["user"] is not None:
        sources = _mapped(plan["binds"], plan["user"])
        _drop(plan["user"])
        _tie(plan["parent"])  # the kernel clears the parent-death signal on a change of user id
    for name, most in plan["limits"].items():
        _limit(getattr(resource, name), most)
    shown = zip(sources, plan["binds"], strict=True)
    binds = [word for source, (path, writable) in shown for word in _shown(source, path, plan, writable=writable)]
    data = [word for path, text in plan["files"].items() for word in ("--ro-bind-data", _memory(text.encode()), path)]
    seccomp = ["--seccomp", _memory(bytes.fromhex(plan["seccomp"]))]
    # With an empty environment: bubblewrap needs none, and that of toolspeak has keys.
    os.execve(plan["bwrap"], [plan["bwrap"], *plan["before"], *data, *binds, *seccomp, *plan["after"]], {})  # noqa: S606


def _shown(source: str, path: str, plan: dict[str, Any], *, writable: bool) -> Iterator[str]:
    """Return bubblewrap's options for one path of the host: a writable folder, or a read-only file or folder.

    The path is opened here and passed as a descriptor. A command that replaces the path by a link in the meantime
    cannot redirect the mount.
    """
    kind = os.O_DIRECTORY if writable else 0
    found = os.open(source, os.O_PATH | os.O_NOFOLLOW | kind)
    if stat.S_ISLNK(os.fstat(found).st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    yield from _bind("--bind-fd" if writable else "--ro-bind-fd", found, path)
    if writable:
        yield from _protected(found, path, plan)


def _limit(which: int, most: int) -> None:
    """Set a limit, unless a lower hard limit applies already: an unprivileged process cannot raise it."""
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


# ---------------------------------------------------------------- what may be read only


def _protected(folder: int, path: str, plan: dict[str, Any]) -> Iterator[str]:
    """Pin the parent folders, which stay writable, then mount the protected paths read-only; see `folder_guard.py`.

    A process below a mount point can neither rename nor remove it, so it cannot put anything else in its place. Each
    writable folder gets its own mounts: if one is inside another, its bind mount covers those of the outer one.
    """
    for how, paths in (("--bind-fd", plan["pins"]), ("--ro-bind-fd", plan["readonly"])):
        for each in paths:
            found = _opened(folder, each.removeprefix(f"{path}/")) if each.startswith(f"{path}/") else None
            if found is not None:
                yield from _bind(how, found, each)


def _opened(folder: int, path: str) -> int | None:
    """Open a path part by part without following links. None if it does not exist or contains a link.

    A command may have created the link, and it may lead anywhere.
    """
    found = folder
    for part in path.split("/"):
        outer = found
        try:
            found = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=outer)
        except (FileNotFoundError, NotADirectoryError):
            return None
        finally:
            if outer != folder:
                os.close(outer)
        if stat.S_ISLNK(os.fstat(found).st_mode):
            os.close(found)
            return None
    return found


def _bind(how: str, descriptor: int, path: str) -> list[str]:
    os.set_inheritable(descriptor, True)  # noqa: FBT003 # the parameter has no keyword
    return [how, str(descriptor), path]


def _memory(data: bytes) -> str:
    descriptor = os.memfd_create("data", 0)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return str(descriptor)


# ---------------------------------------------------------------- root becomes a stranger


def _mapped(binds: list[tuple[str, bool]], user: int) -> list[str]:
    """Mount each path with its owner mapped to `user`, in a private mount namespace. Return the mount points."""
    trees = [_tree(path, user, writable=writable) for path, writable in binds]
    _call("unshare", _LIBC.unshare(_NEW_MOUNTS), "mounts")
    _call("mount", _LIBC.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "/")
    _call("mount", _LIBC.mount(b"tmpfs", _PLACE.encode(), b"tmpfs", _NOSUID | _NODEV, b"size=64k,mode=755"), _PLACE)
    places = list[str]()
    for number, tree in enumerate(trees):
        place = f"{_PLACE}/{number}"
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(place)  # noqa: PTH102 # pathlib takes longer to load than all this
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        _call("move_mount", _LIBC.syscall(_MOVE_MOUNT, tree, b"", _HERE, place.encode(), _FROM_EMPTY_PATH), place)
        places.append(place)
    return places


def _tree(path: str, user: int, *, writable: bool) -> int:
    """Return a descriptor of a mount of the path, with its owner mapped to the user.

    Some file systems (overlayfs, NFS) have no idmapped mounts. A read-only path is then mounted without the mapping,
    since most programs' files are readable by everybody. A writable folder would not be writable, so this raises.
    """
    owner = os.stat(path)  # noqa: PTH116 # as above
    users = _user_namespace(f"{owner.st_uid} {user} 1\n", f"{owner.st_gid} {user} 1\n")
    tree = _call("open_tree", _LIBC.syscall(_OPEN_TREE, _HERE, path.encode(), _CLONE_TREE), path)
    safe = _NOSUID | _NODEV | (0 if writable else _READ_ONLY)
    if (result := _set(tree, _Attributes(_IDMAP | safe, 0, 0, users))) < 0 and not writable:
        result = _set(tree, _Attributes(safe, 0, 0, 0))
    _call("idmapped mount", result, path)
    os.close(users)
    return tree


def _set(tree: int, want: _Attributes) -> int:
    size = ctypes.sizeof(want)
    return int(_LIBC.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH, ctypes.byref(want), size))


def _user_namespace(users: str, groups: str) -> int:
    """Return a descriptor of a user namespace with these maps. A child process keeps it alive until it is open."""
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
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}", path)
    return result


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


# ---------------------------------------------------------------- sandlock


def start_sandlock(plan: dict[str, Any]) -> NoReturn:
    """Run sandlock as the plan says, and exit with the command's status, or 125 if sandlock failed."""
    _LIBC.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != plan["parent"]:  # the parent died before the parent-death signal was set
        os._exit(FAILED)
    for name, most in plan["limits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (lower, lower))
    status = FAILED
    try:
        sys.path.append(plan["path"])
        status = import_module("sandlock").Sandbox(**plan["policy"]).run_interactive(plan["words"])
    except Exception as error:  # noqa: BLE001
        os.write(2, f"the sandbox could not be made: {error}\n".encode())
    os._exit(status & 0xFF)

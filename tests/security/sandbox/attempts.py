"""The table: what a command may try, what must not come of it, and how that is seen.

After every attempt the scene is looked over from outside (`scene.Scene.problems`): the secret, the files around it, the
services, the processes, our configuration. What a row adds to that is its `check`. Where nothing can be seen from
outside, as with a system call that is refused, the script says `GOT` if it succeeded.

A script says `tried` when it has come to its attempt: an attempt that was not made holds nothing.
"""

# ruff: noqa: E501 # a script of a shell is one line

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.security.sandbox.scene import LIMITS, Scene
from toolspeak.runtime.sandbox.sandbox import MIB, Ran

Check = Callable[[Scene, Ran], str]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One row. `texts` are run one after another."""

    area: str
    name: str
    never: str
    """What must not happen."""
    texts: tuple[str, ...]
    check: Check | None = None
    seconds: float = 10.0
    cancel: float = 0.0
    """Seconds after which it is cancelled."""


def _got(scene: Scene, ran: Ran) -> str:
    del scene
    return "it got what it wanted" if "GOT" in ran.output else ""


def _timed_out(scene: Scene, ran: Ran) -> str:
    del scene
    return "" if ran.timed_out else "it was not stopped"


def _stopped(scene: Scene, ran: Ran) -> str:
    return _got(scene, ran) or ("" if ran.killed or ran.status else "it was not stopped")


def _py(code: str) -> str:
    return "python3 -c " + shlex.quote(f"{_PRELUDE}{code}")


_PRELUDE: Final = """
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    return libc.syscall(number, *words)
def got(what):
    print("GOT", what, flush=True)
def want(act):
    try:
        got(act())
    except BaseException as error:
        print("no:", type(error).__name__, error)
print("tried", flush=True)
"""


def _sh(text: str) -> str:
    return f"echo tried; {text}"


def _row(  # noqa: PLR0913 # the columns of the table
    area: str,
    name: str,
    never: str,
    *texts: str,
    check: Check | None = _got,
    seconds: float = 10.0,
    cancel: float = 0.0,
) -> Attempt:
    return Attempt(area, name, never, texts, check, seconds, cancel)


def _refused(name: str, words: str) -> Attempt:
    """Make the row of a system call that must fail."""
    code = f"r = call(@nr_{name}@, {words})\nif r >= 0: got(r)\nelse: print('errno', ctypes.get_errno())"
    return _row("kernel", name.replace("_", " "), "the system call succeeds", _py(code))


def _folder_size(scene: Scene) -> int:
    return sum(path.lstat().st_blocks * 512 for path in scene.folder.rglob("*"))


def _small(scene: Scene, ran: Ran) -> str:
    size = _folder_size(scene)
    return _got(scene, ran) or (f"the folder holds {size >> 20} MiB" if size > 400 * MIB else "")


def _no_core(scene: Scene, ran: Ran) -> str:
    return _got(scene, ran) or ("a core lies in the folder" if any(scene.folder.glob("core*")) else "")


def _capped(scene: Scene, ran: Ran) -> str:
    del scene
    return "" if len(ran.output.encode()) <= 5 * LIMITS.output else f"{len(ran.output)} characters were kept"


def _line_seen(scene: Scene, ran: Ran) -> str:
    del scene
    return "" if "rm -rf" in ran.output and "\r" not in ran.output else "the line is hidden"


def _flood_stopped(scene: Scene, ran: Ran) -> str:
    return _capped(scene, ran) or ("" if ran.killed else "it was not stopped")


def _git_kept(scene: Scene, ran: Ran) -> str:
    return _got(scene, ran) or ("" if (scene.folder / ".git/config").is_file() else ".git/config is gone")


def _unchanged(path: str) -> Check:
    before = Path(path).read_bytes() if Path(path).is_file() else None

    def check(scene: Scene, ran: Ran) -> str:
        now = Path(path).read_bytes() if Path(path).is_file() else None
        return _got(scene, ran) or ("" if now == before else f"{path} has changed")

    return check


def _absent(*paths: str) -> Check:
    def check(scene: Scene, ran: Ran) -> str:
        made = [path for path in paths if Path(path).exists()]
        return _got(scene, ran) or (f"{', '.join(made)} was made" if made else "")

    return check


FILES: Final = (
    _row("files", "read a host file", "its content is told", _sh("cat @secret@; cp @secret@ mine; cat mine")),
    _row("files", "overwrite a host file", "it changes", _sh("echo evil > @secret@; rm -f @secret@; mv @secret@ x")),
    _row("files", "climb with ..", "a file beside the folder appears", _sh("cd ..; echo x > made; cat outside/secret")),
    _row("files", "password hashes", "they are told", _sh("grep -q '^root:[^x]' /etc/shadow && echo GOT")),
    _row(
        *("files", "homes", "a file of a home is seen"),
        _sh("for f in /root/.* /home/*/.*; do [ -f $f ] && cat $f >/dev/null && echo GOT $f; done; :"),
    ),
    _row("files", "read by a symbolic link", "its target is told", _sh("ln -s @secret@ l; cat l; cat < l")),
    _row(
        "files",
        "write by a symbolic link",
        "its target changes",
        _sh("ln -s @secret@ l; echo evil > l; cp /etc/group l"),
    ),
    _row(
        "files", "link to a folder", "what is in it is told", _sh("ln -s @outside@ l; cat l/secret; ls l/ && echo GOT")
    ),
    _row("files", "hard link to a host file", "it is made", _sh("ln @secret@ h && echo GOT; cat h")),
    _row(
        *("files", "hard link to a setuid program", "it is made"),
        _sh("ln /usr/bin/su h && echo GOT; ln /usr/bin/passwd i && echo GOT; ls -la"),
    ),
    _row(
        "files",
        "move the folder",
        "it is gone",
        _sh("mv @folder@ @folder@2 && echo GOT; rmdir @folder@ && echo GOT; :"),
    ),
    _row(
        *("files", "write programs of the system", "one appears"),
        _sh("echo x > /usr/bin/toolspeak-evil; echo x > /bin/toolspeak-evil; echo x >> /usr/bin/env"),
        check=_absent("/usr/bin/toolspeak-evil", "/bin/toolspeak-evil"),
    ),
    _row(
        *("files", "cron, profiles, preload", "a file appears outside"),
        _sh(
            "for f in /etc/cron.d/evil /etc/ld.so.preload /etc/profile.d/evil.sh /var/spool/cron/crontabs/evil"
            " /root/.evil /etc/sudoers.d/evil; do echo x > $f; done"
        ),
        check=_absent("/etc/cron.d/evil", "/etc/profile.d/evil.sh", "/root/.evil", "/etc/sudoers.d/evil"),
    ),
    _row(
        "files",
        "setuid by chmod",
        "a setuid file is left",
        _sh("cp /bin/sh s; chmod 4755 s; chmod u+s s; install -m 4755 s t"),
    ),
    _row(
        *("files", "setuid by open and mknod", "a setuid file is left"),
        _py(
            "want(lambda: os.open('s', os.O_CREAT | os.O_WRONLY, 0o4755) and '')\nwant(lambda: os.mknod('t', 0o104755))"
        ),
        check=None,
    ),
    _row(
        *("files", "setuid by openat2", "a setuid file is left"),
        _py(
            "how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)\n"
            "call(@nr_openat2@, -100, b's', ctypes.byref(how), 24)"
        ),
    ),
    _row(
        "files",
        "device nodes",
        "one can be opened",
        _sh("mknod d b 8 0; mknod c c 1 1; mknod /tmp/d b 254 0 && echo GOT; :"),
    ),
    _row(
        "files",
        "raw disks and memory",
        "one can be opened",
        _sh(
            "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmsg /dev/port /dev/kvm /dev/fuse; do head -c1 $d >/dev/null 2>&1 && echo GOT $d; done; :"
        ),
    ),
    _row(
        "files",
        "by file handle",
        "the call succeeds",
        _py(
            "r = call(@nr_open_by_handle_at@, 0, b'\\0' * 64, 0)\nif r >= 0 or ctypes.get_errno() not in (1, 38): got(ctypes.get_errno())"
        ),
    ),
)

CONFIGURATION: Final = (
    _row(
        "configuration",
        "its own settings",
        "they change",
        _sh("echo evil > toolspeak.toml; rm -f toolspeak.toml; mv toolspeak.toml x; sed -i s/8080/1/ toolspeak.toml"),
    ),
    _row(
        "configuration",
        "git's settings",
        "they change",
        _sh("git config core.fsmonitor evil; echo evil >> .git/config; rm .git/config; cp plain.txt .git/config"),
    ),
    _row(
        "configuration",
        "a hook",
        "there is one",
        _sh("mv .git/hooks .git/h; rmdir .git/hooks; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit"),
    ),
    _row(
        "configuration",
        "another .git",
        "the old one is gone",
        _sh("mv .git old; rm -rf .git; mkdir .git; echo evil > .git/config"),
        check=_git_kept,
    ),
    _row(
        "configuration",
        "another common folder",
        "git obeys it",
        _sh("mkdir evil; echo evil > evil/config; echo ../evil > .git/commondir"),
    ),
    _row(
        "configuration",
        "settings that lead out",
        "what they lead to is told",
        _sh("ln -sfn @outside@ .toolspeak"),
        _sh("cat .toolspeak/config; ls .toolspeak/"),
    ),
)

PROC: Final = (
    _row(
        "proc",
        "root of other processes",
        "a host file is told",
        _sh("for p in /proc/[0-9]*; do cat $p/root@secret@ $p/cwd/secret; done 2>/dev/null; :"),
    ),
    _row(
        "proc", "environment of others", "a variable of ours is told", _sh("env; cat /proc/*/environ | tr '\\0' '\\n'")
    ),
    _row(
        "proc",
        "a process of the host",
        "it is seen",
        _sh("test -d /proc/@pid@ && tr '\\0' ' ' < /proc/@pid@/cmdline | grep sleep && echo GOT; :"),
    ),
    _row(
        "proc",
        "core pattern",
        "it changes",
        _sh("echo '|/tmp/evil' > /proc/sys/kernel/core_pattern && echo GOT; :"),
        check=_unchanged("/proc/sys/kernel/core_pattern"),
    ),
    _row(
        "proc",
        "settings of the kernel",
        "one changes",
        _sh(
            "for f in /proc/sys/kernel/modprobe /proc/sys/vm/overcommit_memory /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/sys/fs/binfmt_misc/register; do echo h > $f && echo GOT $f; done 2>/dev/null; :"
        ),
        check=_unchanged("/proc/sys/vm/overcommit_memory"),
    ),
    _row(
        "proc",
        "memory of itself and others",
        "a host process is read",
        _py(
            "for pid in (1, @pid@, os.getppid()):\n    try:\n        open(f'/proc/{pid}/mem', 'rb+')\n        if pid == @pid@: got(pid)\n    except OSError as error: print(error)"
        ),
    ),
    _row(
        "proc",
        "/sys and control groups",
        "one is written",
        _sh(
            "for f in /sys/kernel/uevent_helper /sys/fs/cgroup/pids/release_agent /sys/fs/cgroup/memory/release_agent /sys/power/state; do echo x > $f && echo GOT $f; done; mkdir /sys/fs/cgroup/pids/evil && echo GOT; mkdir /sys/fs/cgroup/evil && echo GOT; :"
        ),
    ),
    _row(
        "proc",
        "inherited descriptors",
        "a file of ours can be read",
        _sh(
            "for n in 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat /proc/self/fd/$n; cat <&$n; done 2>/dev/null; :"
        ),
    ),
    _row(
        "proc",
        "the program's own file",
        "it is written",
        _py("want(lambda: open('/proc/self/exe', 'r+b'))\nwant(lambda: open('/proc/1/exe', 'r+b'))"),
    ),
    _row(
        "proc",
        "a lower oom score",
        "it is less likely to be killed",
        _sh("echo -1000 > /proc/self/oom_score_adj && echo GOT; :"),
    ),
)

NETWORK: Final = (
    _row(
        "network",
        "a service on loopback",
        "it is called",
        _py("want(lambda: socket.create_connection(('127.0.0.1', @port@), 2))"),
    ),
    _row(
        "network",
        "a service on loopback, IPv6",
        "it is called",
        _py("want(lambda: socket.create_connection(('::1', @port6@), 2))"),
    ),
    _row(
        "network",
        "a datagram",
        "it arrives",
        _py("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', @udp@))"),
        check=None,
    ),
    _row(
        "network",
        "the internet",
        "a connection is made",
        _py(
            "want(lambda: socket.create_connection(('1.1.1.1', 443), 2))\nwant(lambda: socket.create_connection(('93.184.215.14', 80), 2))"
        ),
        seconds=8,
    ),
    _row("network", "names", "one is resolved", _py("want(lambda: socket.getaddrinfo('example.com', 80))"), seconds=20),
    _row(
        "network",
        "metadata of the cloud",
        "it answers",
        _py("want(lambda: socket.create_connection(('169.254.169.254', 80), 2))"),
        seconds=8,
    ),
    _row(
        "network",
        "an abstract socket",
        "it is called",
        _py("s = socket.socket(socket.AF_UNIX)\nwant(lambda: s.connect('\\0@abstract@'))"),
    ),
    _row(
        "network",
        "a socket outside the folder",
        "it is called",
        _py(
            "s = socket.socket(socket.AF_UNIX)\nwant(lambda: s.connect('@outside@/socket'))\nos.symlink('@outside@/socket', 'k')\nwant(lambda: s.connect('k'))"
        ),
    ),
    _row(
        "network",
        "the machine below (vsock)",
        "there is such a socket",
        _py("want(lambda: socket.socket(40, socket.SOCK_STREAM))"),
    ),
    _row(
        "network",
        "raw and packet sockets",
        "there is one",
        _py(
            "want(lambda: socket.socket(17, 3))\nwant(lambda: socket.socket(2, 3, 1))\nwant(lambda: socket.socket(38, 5))\nwant(lambda: socket.socket(31, 3, 1))"
        ),
    ),
)

PROCESSES: Final = (
    _row("processes", "a session of its own", "it lives on", _sh("setsid sleep @naps@ & sleep 0.1")),
    _row(
        "processes",
        "a daemon",
        "it lives on",
        _py(
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execvp('sleep', ['sleep', '@naps@'])\n    os._exit(0)\nos.wait()"
        ),
    ),
    _row(
        "processes",
        "in the background",
        "it lives on",
        _sh("nohup sleep @naps@ >/dev/null 2>&1 </dev/null & sleep 0.1"),
    ),
    _row("processes", "sleep for ever", "it goes on", _sh("sleep @naps@"), check=_timed_out, seconds=2),
    _row(
        "processes",
        "deaf to signals",
        "it goes on",
        _sh("trap '' TERM INT HUP QUIT PIPE; (trap '' TERM; sleep @naps@) & while :; do sleep 1; done"),
        check=_timed_out,
        seconds=2,
    ),
    _row(
        "processes",
        "sleep when it is cancelled",
        "it lives on",
        _sh("setsid sleep @naps@ & sleep @naps@"),
        check=None,
        cancel=1.0,
    ),
    _row(
        "processes",
        "cancelled at once",
        "it lives on",
        _sh("setsid sleep @naps@ & sleep @naps@"),
        check=None,
        cancel=0.04,
    ),
    _row(
        "processes",
        "kill a process of the host",
        "it dies",
        _sh("kill -9 @pid@ && kill -0 @pid@ && echo GOT; kill -9 -@pid@; :"),
    ),
    _row("processes", "kill all", "a process of the host dies", _sh("kill -9 -1; sleep 0.2; kill -9 -1")),
    _row(
        "processes",
        "kill the parent",
        "we die, or something is left",
        _sh("setsid sleep @naps@ & kill -9 $PPID; kill -9 1; kill -TERM 1; sleep 0.2"),
    ),
    _row("processes", "stop the parent", "we wait for ever", _sh("kill -STOP $PPID; kill -STOP 1; echo on")),
    _row(
        "processes",
        "trace a process of the host",
        "it can be",
        _py("r = call(@nr_ptrace@, 16, @pid@, 0, 0)\nif r >= 0: got(r)"),
    ),
    _row(
        "processes",
        "trace a child",
        "it can be",
        _py(
            "child = os.fork()\nif child == 0:\n    time.sleep(3)\n    os._exit(0)\nr = call(@nr_ptrace@, 16, child, 0, 0)\nos.kill(child, 9)\nif r >= 0: got(r)"
        ),
    ),
)

RESOURCES: Final = (
    _row(
        "resources",
        "fork bomb",
        "there are more processes than allowed",
        _py(
            "n = 0\nwhile n < 200:\n    try:\n        if os.fork() == 0:\n            time.sleep(2)\n            os._exit(0)\n        n += 1\n    except OSError as error:\n        print('stopped after', n)\n        break\nif n > 60: got(n)"
        ),
    ),
    _row("resources", "shell fork bomb", "it goes on", _sh("f() { f | f & }; f; sleep @naps@"), check=None, seconds=2),
    _row(
        "resources",
        "threads",
        "there are more than allowed",
        _py(
            "import threading\nn = 0\ntry:\n    while n < 400:\n        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n        n += 1\nexcept RuntimeError: print('stopped after', n)\nif n > 60: got(n)\nos._exit(0)"
        ),
    ),
    _row(
        "resources",
        "memory of one",
        "it has twice what is allowed",
        _py("x = bytearray(400 << 20)\nx[::4096] = b'x' * len(x[::4096])\ngot(len(x))"),
    ),
    _row(
        "resources",
        "memory of many",
        "they have twice what is allowed",
        _py(
            "for n in range(6):\n    if os.fork() == 0:\n        x = bytearray(100 << 20)\n        x[::4096] = b'x' * len(x[::4096])\n        time.sleep(2)\n        os._exit(0)\nalive = 0\nfor n in range(6):\n    pid, status = os.wait()\n    alive += status == 0\nif alive > 3: got(alive)"
        ),
        seconds=15,
    ),
    _row(
        "resources",
        "memory in files of memory",
        "it has twice what is allowed",
        _py(
            "fds = []\nfor n in range(20):\n    fds.append(os.memfd_create('x'))\n    os.write(fds[-1], bytes(20 << 20))\ntime.sleep(2)\ngot(sum(os.fstat(f).st_blocks for f in fds) * 512)"
        ),
        seconds=15,
    ),
    _row(
        "resources",
        "memory of no process",
        "it has twice what is allowed",
        _py(
            "libc.shmat.restype = ctypes.c_void_p\nfor n in range(10):\n    found = libc.shmget(0, 40 << 20, 0o1600)\n    if found < 0: sys.exit('refused')\n    place = libc.shmat(found, None, 0)\n    ctypes.memset(place, 1, 40 << 20)\n    libc.shmdt(ctypes.c_void_p(place))\ngot('')"
        ),
    ),
    _row(
        "resources",
        "fill /tmp",
        "more than its size is there",
        _sh(
            "head -c 20000000 /dev/zero > /tmp/a; head -c 20000000 /dev/zero > /tmp/b; [ $(du -sk /tmp | cut -f1) -gt 10000 ] && echo GOT; :"
        ),
    ),
    _row(
        "resources",
        "fill /dev/shm and /",
        "it grows without end",
        _sh(
            "head -c 24000000 /dev/zero > /dev/shm/a; head -c 24000000 /dev/zero > /a && echo GOT; head -c 1 /dev/zero > /dev/a && echo GOT; [ $(du -sk /dev/shm | cut -f1) -gt 18000 ] && echo GOT; :"
        ),
    ),
    _row(
        "resources",
        "a huge file",
        "it is there",
        _sh("head -c 60000000 /dev/zero > big; [ $(wc -c < big) -gt 30000000 ] && echo GOT; :"),
        check=_small,
    ),
    _row(
        "resources",
        "fill the folder",
        "it goes on",
        _sh("i=0; while [ $i -lt 200 ]; do head -c 20000000 /dev/zero > f$i; i=$((i+1)); done; echo GOT"),
        check=_small,
        seconds=30,
    ),
    _row(
        "resources",
        "fill the disk unseen",
        "it goes on",
        _py(
            "files = []\nfor n in range(100):\n    f = open('x', 'wb')\n    os.unlink('x')\n    f.write(bytes(20 << 20))\n    f.flush()\n    files.append(f)\ngot(len(files))"
        ),
        check=_stopped,
        seconds=30,
    ),
    _row(
        "resources",
        "open files",
        "more than allowed are open",
        _py(
            "files = []\ntry:\n    while len(files) < 2000: files.append(os.open('/dev/null', 0))\nexcept OSError as error: print(error)\nif len(files) > 300: got(len(files))"
        ),
    ),
    _row("resources", "burn the processor", "it goes on", _sh("while :; do :; done"), check=_timed_out, seconds=2),
    _row(
        "resources",
        "raise limits",
        "one is higher",
        _py(
            "import resource\nfor which in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):\n    want(lambda: resource.setrlimit(which, (1 << 30, 1 << 30)) or which)"
        ),
    ),
    _row(
        "resources",
        "core dump",
        "a core is left",
        _sh("ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls core* && echo GOT; :"),
        check=_no_core,
    ),
)

KERNEL: Final = (
    _row(
        "kernel",
        "nested namespaces",
        "there is one",
        _sh(
            "unshare -Ur true && echo GOT; unshare -n true && echo GOT; unshare -m true && echo GOT; bwrap --ro-bind / / true && echo GOT; :"
        ),
    ),
    _row(
        "kernel",
        "namespaces by clone",
        "there is one",
        _py(
            "import platform\nnr = 56 if platform.machine() == 'x86_64' else 220\nr = call(nr, 0x10000000 | 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nif r > 0: got(r)"
        ),
    ),
    _row(
        "kernel",
        "namespaces by clone3",
        "there is one",
        _py(
            "words = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)\nr = call(@nr_clone3@, ctypes.byref(words), 88)\nif r == 0: os._exit(0)\nif r > 0: got(r)"
        ),
    ),
    _row(
        "kernel",
        "mount",
        "something is mounted",
        _sh(
            "mkdir m; mount -t tmpfs x m && echo GOT; mount --bind / m && echo GOT; mount -o remount,rw /usr && echo GOT; umount @folder@ && echo GOT; umount -l /proc && echo GOT; :"
        ),
    ),
    _row("kernel", "chroot", "it has another root", _py("want(lambda: os.chroot('.') or '')")),
    _row(
        "kernel",
        "a namespace of the host",
        "it is entered",
        _py(
            "for kind in ('mnt', 'net', 'pid', 'user'):\n    for pid in (1, @pid@, os.getppid()):\n        try: fd = os.open(f'/proc/{pid}/ns/{kind}', 0)\n        except OSError: continue\n        if call(@nr_setns@, fd, 0) == 0: got(kind)"
        ),
    ),
    _row(
        "kernel",
        "become root",
        "its number is 0",
        _sh("id -u | grep -qx 0 && echo GOT; su -c 'echo GOT' </dev/null; sudo -n echo GOT; :"),
    ),
    _row(
        "kernel",
        "set its user",
        "it is root",
        _py(
            "want(lambda: os.setuid(0) or '')\nwant(lambda: os.setresuid(0, 0, 0) or '')\nwant(lambda: os.setgroups([0]) or '')"
        ),
    ),
    _row(
        "kernel",
        "capabilities",
        "it has one",
        _sh(
            "grep -E '^Cap(Eff|Prm|Amb)' /proc/self/status | grep -v 0000000000000000 && echo GOT; grep -q 'NoNewPrivs:.1' /proc/self/status || echo GOT; :"
        ),
    ),
    _row(
        "kernel", "shared memory of the host", "it is attached", _py("r = libc.shmget(@shm@, 0, 0)\nif r >= 0: got(r)")
    ),
    _row(
        "kernel",
        "name of the host",
        "it changes",
        _sh("hostname evil && echo GOT; :"),
        _py("if libc.sethostname(b'evil', 4) == 0: got('')"),
        check=_unchanged("/proc/sys/kernel/hostname"),
    ),
    _row("kernel", "clock", "it is set", _py("want(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time() + 5))")),
    _row(
        "kernel", "messages of the kernel", "they are told", _sh("dmesg 2>/dev/null | head -1 | grep . && echo GOT; :")
    ),
    _row("kernel", "calls of the other ABI", "one succeeds", _py("r = call(0x40000000 + 39)\nif r > 0: got(r)")),
    _refused("io_uring_setup", "1, ctypes.byref((ctypes.c_char * 256)())"),
    _refused("bpf", "0, ctypes.byref((ctypes.c_uint32 * 32)(2, 4, 4, 1)), 72"),
    _refused("perf_event_open", "ctypes.byref((ctypes.c_uint32 * 32)(1, 112, 0)), 0, -1, -1, 0"),
    _refused("userfaultfd", "1"),
    _refused("keyctl", "0, -3, 0"),
    _refused("add_key", "b'user', b'x', b'y', 1, -3"),
    _refused("process_vm_readv", "@pid@, 0, 0, 0, 0, 0"),
    _refused("init_module", "0, 0, b''"),
    _refused("swapon", "b'plain.txt', 0"),
    _refused("quotactl", "0, 0, 0, 0"),
)

TERMINAL: Final = (
    _row(
        "terminal",
        "escape sequences",
        "they reach a terminal",
        _sh(r"printf '\033]0;owned\007\033[2J\033[1;1H\033]52;c;ZXZpbA==\007\0233m'"),
    ),
    _row(
        "terminal",
        "text that runs backwards or hides",
        "it is not seen",
        _sh(r"printf '\342\200\256evil\342\200\213\363\240\201\201\357\273\277'"),
    ),
    _row(
        "terminal",
        "overwriting by carriage return",
        "a line is hidden",
        _sh(r"printf 'rm -rf /\rls       \b\b\b'"),
        check=_line_seen,
    ),
    _row("terminal", "binary output", "it is told as it is", _sh("head -c 60000 /dev/urandom"), check=_capped),
    _row(
        "terminal",
        "output without end",
        "it is all kept",
        _sh("yes"),
        check=_flood_stopped,
    ),
    _row(
        "terminal",
        "one line without end",
        "it is all kept",
        _sh("tr '\\0' x < /dev/zero"),
        check=_flood_stopped,
    ),
    _row(
        "terminal",
        "type for the user",
        "a terminal takes it",
        _py(
            "import fcntl\nwant(lambda: open('/dev/tty', 'r+b', 0))\na, b = os.openpty()\nos.setsid() if os.getpid() != os.getsid(0) else None\nwant(lambda: fcntl.ioctl(b, 0x541C, b'\\x02' + bytes(16)))\nfor fd in (0, 1, 2):\n    want(lambda: fcntl.ioctl(fd, 0x5412, b'x'))"
        ),
    ),
    _row("terminal", "wait for input", "it waits for ever", _sh("cat; read x; echo over")),
)

ATTEMPTS: Final = (*FILES, *CONFIGURATION, *PROC, *NETWORK, *PROCESSES, *RESOURCES, *KERNEL, *TERMINAL)
AREAS: Final = tuple(area for area, _ in groupby(ATTEMPTS, key=lambda attempt: attempt.area))

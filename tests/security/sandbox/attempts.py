"""The table: what a command may try, what must not come of it, and how that is seen.

After every attempt the scene is looked over from outside (`scene.Scene.problems`): the secret, the files around it, the
services, the processes, our configuration. What a row adds to that is its `check`. Where nothing can be seen from
outside, as with a system call that is refused, the script says `GOT` if it succeeded.

A script says `tried` when it has come to its attempt: an attempt that was not made holds nothing.
"""

# ruff: noqa: E501 # a script of a shell is one line

from itertools import groupby
from pathlib import Path
from typing import Final

from tests.security.sandbox.attempts_limits import LIMITED, folder_size
from tests.security.sandbox.row import Attempt, Check
from tests.security.sandbox.row import got as _got
from tests.security.sandbox.row import py as _py
from tests.security.sandbox.row import refused as _refused
from tests.security.sandbox.row import row as _row
from tests.security.sandbox.row import sh as _sh
from tests.security.sandbox.scene import LIMITS, Scene
from toolspeak.agent.sandbox.sandbox import MIB, Ran


def _timed_out(scene: Scene, ran: Ran) -> str:
    del scene
    return "" if ran.timed_out else "it was not stopped"


def _stopped(scene: Scene, ran: Ran) -> str:
    return _got(scene, ran) or ("" if ran.killed or ran.status else "it was not stopped")


def _small(scene: Scene, ran: Ran) -> str:
    size = folder_size(scene)
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

# ---------------------------------------------------------------- what the host would run afterwards

_EVIL: Final = r"""common() { mkdir -p "$1/objects" "$1/refs"; printf '[core]\n\tfsmonitor = "touch @outside@/PWNED; false"\n' >> "$1/config"; }; evil() { common "$1"; echo ref: refs/heads/main > "$1/HEAD"; }; bare() { printf '\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n' >> "$1/config"; }; """
"""A function that makes a repository by hand whose settings run a command; the host sees that it ran by a file."""
_WHO: Final = "git -c user.name=a -c user.email=a@b"
_SUBMODULE: Final = f"mkdir -p libs/sub; cd libs/sub; git init -q; {_WHO} commit -q --allow-empty -m x; cd ../..; git add libs/sub 2>/dev/null; {_WHO} commit -qm x"
_UNFETCHED: Final = f"{_SUBMODULE}; rm -rf libs/sub/.git; printf '[submodule \"s\"]\\n\\tpath = libs/sub\\n\\turl = ../s\\n' > .gitmodules"
_LINGER: Final = "touch ready; sleep 1.5"
_WAIT: Final = "touch ready; sleep @naps@"


def _host(scene: Scene, ran: Ran) -> str:
    """Let the person use git all over the folder."""
    del ran
    return scene.use_folder()


def _no_repository(name: str) -> Check:
    """Check that git on the host does not take a folder for a repository."""

    def check(scene: Scene, ran: Ran) -> str:
        del ran
        return f"git takes {name} for a repository" if scene.git_folder(scene.folder / name) == "." else ""

    return check


def _noted(*names: str) -> Check:
    """Check that the person is told about each of these files."""

    def check(scene: Scene, ran: Ran) -> str:
        del scene
        silent = [name for name in names if not any(repr(name) in note for note in ran.notes)]
        return f"nothing was said of {', '.join(silent)}" if silent else ""

    return check


def _gone(*names: str) -> Check:
    """Check that these are not in the folder."""

    def check(scene: Scene, ran: Ran) -> str:
        del ran
        try:
            there = [name for name in names if (scene.folder / name).exists()]
        except PermissionError as error:
            return f"{error.filename} cannot be looked into"
        return f"{', '.join(map(ascii, there))} is there" if there else ""

    return check


def _same(name: str, text: str) -> Check:
    """Check that a file is as the person has left it."""

    def check(scene: Scene, ran: Ran) -> str:
        del ran
        file = scene.folder / name
        return "" if file.is_file() and file.read_text() == text else f"{name} was changed"

    return check


def _left(  # noqa: PLR0913 # the columns of the table
    area: str,
    name: str,
    never: str,
    text: str,
    *,
    check: Check = _host,
    setup: str = "",
    during: bool = False,
    kill: bool = False,
    may_stop: bool = True,
    cancel: float = 0.0,
    seconds: float = 20.0,
) -> Attempt:
    """Make a row of something that is left for the host."""
    return Attempt(
        area,
        name,
        never,
        (_sh(_EVIL + text),),
        check,
        seconds,
        cancel,
        only="bwrap" if during else "",  # sandlock has no read-only mounts, and its guard needs some milliseconds
        setup=setup,
        during=during,
        kill=kill,
        may_stop=may_stop,
    )


_RUNS: Final = "git on the host runs it"

GIT: Final = (
    _left(
        *("git", "a nested repository and its gitlink", _RUNS),
        f"mkdir sub; cd sub; git init -q; {_WHO} commit -q --allow-empty -m x; evil .git; cd ..; git add sub",
    ),
    _left(
        *("git", "a common folder while it runs", _RUNS),
        f"common evil; echo ../evil > .git/commondir; {_LINGER}",
        during=True,
    ),
    _left(
        "git",
        "a common folder, toolspeak killed",
        _RUNS,
        f"common evil; echo ../evil > .git/commondir; {_WAIT}",
        kill=True,
    ),
    _left("git", "a nested repository, toolspeak killed", _RUNS, f"evil sub/.git; git add sub; {_WAIT}", kill=True),
    _left("git", "a nested repository by hand", _RUNS, "evil sub/.git"),
    _left("git", "a nested repository moved in", _RUNS, "evil g/h; mkdir sub; mv g/h sub/.git"),
    _left("git", "a .git file", _RUNS, "evil g; mkdir sub; echo gitdir: ../g > sub/.git"),
    _left("git", "a .git link", _RUNS, "evil g; mkdir sub; ln -s ../g sub/.git"),
    _left("git", "a bare repository", _RUNS, "git init -q --bare x; evil x; bare x"),
    _left("git", "a bare repository, toolspeak killed", _RUNS, f"evil a/b; bare a/b; {_WAIT}", kill=True),
    _left(
        "git",
        "a bare repository with its parts elsewhere",
        _RUNS,
        "common g; mkdir b; echo ../g > b/commondir; echo ref: refs/heads/main > b/HEAD",
        check=_no_repository("b"),
    ),
    _left(
        *("git", "settings of a worktree", _RUNS),
        f"common e; cp e/config .git/config.worktree; {_LINGER}",
        setup="git config core.repositoryFormatVersion 1; git config extensions.worktreeConfig true",
        during=True,
    ),
    _left(
        *("git", "a hook in the tree", _RUNS),
        "printf '#!/bin/sh\\ntouch @outside@/PWNED\\n' > .husky/pre-commit; mv .husky x; mkdir .husky; cp x/pre-commit .husky/",
        setup="git config core.hooksPath .husky; mkdir .husky; printf '#!/bin/sh\\n' > .husky/pre-commit; chmod +x .husky/pre-commit",
    ),
    _left(
        *("git", "settings that are included from the tree", _RUNS),
        "common e; cat e/config > conf/git; mv conf x; mkdir conf; cp e/config conf/git",
        setup="mkdir conf; touch conf/git; git config include.path ../conf/git",
    ),
    _left(
        *("git", "a filter in the tree", _RUNS),
        "printf '#!/bin/sh\\ntouch @outside@/PWNED\\ncat\\n' > bin/clean; echo more >> plain.txt",
        setup=f"mkdir bin; printf '#!/bin/sh\\ncat\\n' > bin/clean; chmod +x bin/clean; git config filter.x.clean ./bin/clean; echo '*.txt filter=x' > .gitattributes; git add .; {_WHO} commit -qm x",
    ),
    _left("git", "another .git in a submodule", _RUNS, "rm -rf libs/sub/.git; evil libs/sub/.git", setup=_SUBMODULE),
    _left("git", "settings of a submodule", _RUNS, f"evil libs/sub/.git; {_LINGER}", setup=_SUBMODULE, during=True),
    _left(
        *("git", "a submodule moved aside", _RUNS),
        f"mv libs old; evil libs/sub/.git; mv libs/sub libs/old; evil libs/sub/.git; {_LINGER}",
        setup=_SUBMODULE,
        during=True,
    ),
    _left(
        "git",
        "a submodule that was never fetched",
        _RUNS,
        f"evil libs/sub/.git; {_LINGER}",
        setup=_UNFETCHED,
        during=True,
    ),
    _left(
        *("git", "hooks and attributes of git", _RUNS),
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch @outside@/PWNED\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo '* filter=x' > .git/info/attributes",
    ),
    _left(
        "git",
        "settings of a submodule's git folder",
        _RUNS,
        "common e; cp e/config .git/modules/s/config",
        setup="mkdir -p .git/modules/s; touch .git/modules/s/config",
        check=_same(".git/modules/s/config", ""),
    ),
    _left("git", "a first repository", _RUNS, "git init -q; evil .git", setup="rm -rf .git"),
    _left(
        "git",
        "hidden by its rights",
        _RUNS,
        "evil a/sub/.git; chmod 0 a/sub/.git a/sub; chmod 500 a",
        check=_gone("a/sub/.git/HEAD"),
    ),
    _left("git", "a repository in a refused one", _RUNS, "evil g; evil g/x/.git; evil g/y; mkdir sub; mv g sub/.git"),
    _left("git", "three hundred at once", _RUNS, "evil g; for i in $(seq 300); do mkdir s$i; cp -r g s$i/.git; done"),
    _left(
        "git",
        "two hundred levels down",
        _RUNS,
        "evil g; for i in $(seq 200); do mkdir d; cd d; done; cp -r @folder@/g .git; cd @folder@; rm -rf g",
        check=_gone("/".join(["d"] * 200) + "/.git"),
    ),
    _left(
        "git",
        "in and out of its place",
        _RUNS,
        "common g; mkdir sub; for i in $(seq 100); do mv g sub/.git; mv sub/.git g; done; evil g; mv g sub/.git",
    ),
    _left(
        "git", "a nested repository, cancelled", _RUNS, "mkdir sub; sleep 0.5; evil sub/.git; sleep @naps@", cancel=1.5
    ),
    _left("git", "a nested repository, out of time", _RUNS, "evil sub/.git; sleep @naps@", seconds=2),
    _left("git", "in capital letters", "it is there", "evil sub/.GIT; evil b/.gIt", check=_gone("sub/.GIT", "b/.gIt")),
    _left("git", "by its short name of Windows", "it is there", "evil sub/git~1", check=_gone("sub/git~1")),
    _left(
        "git",
        "with a letter that macOS ignores",
        "it is there",
        "evil \"sub/$(printf '.g\\342\\200\\214it')\"",
        check=_gone("sub/.g\u200cit"),
    ),
    _left(
        "git",
        "with an ending that Windows drops",
        "it is there",
        "evil 'sub/.git::$INDEX_ALLOCATION'; evil 'b/.git.'",
        check=_gone("sub/.git::$INDEX_ALLOCATION", "b/.git."),
    ),
)

_OBEYS: Final = "the host obeys it unseen"
HOST: Final = (
    _left(
        "host",
        "tasks of an editor",
        "they are there",
        "mkdir .vscode; echo evil > .vscode/tasks.json; mv .vscode x; mkdir x; echo > x/t; mv x .vscode",
        check=_gone(".vscode/tasks.json", ".vscode/t"),
    ),
    _left(
        "host",
        "other tasks of an editor",
        "they change",
        "echo evil > .vscode/tasks.json; mv .vscode x; mkdir .vscode; echo evil > .vscode/tasks.json",
        setup="mkdir .vscode; echo mine > .vscode/tasks.json",
        check=_same(".vscode/tasks.json", "mine\n"),
    ),
    _left(
        "host",
        "a folder of an editor moved in",
        "it is there",
        "mkdir x; echo evil > x/workspace.xml; mv -T x .idea",
        check=_gone(".idea/workspace.xml"),
    ),
    _left(
        "host",
        "hooks of an agent",
        "they change",
        "echo evil > .claude/settings.json; rm -rf .claude",
        setup="mkdir .claude; echo mine > .claude/settings.json",
        check=_same(".claude/settings.json", "mine\n"),
    ),
    _left(
        "host",
        "settings of ours that were not there",
        "they are there",
        "mkdir .toolspeak; echo evil > .toolspeak/config",
        check=_gone(".toolspeak/config"),
    ),
    _left("host", "an .envrc", _OBEYS, "echo evil > .envrc", check=_noted(".envrc")),
    _left(
        "host",
        "another .envrc",
        _OBEYS,
        "sleep 0.1; echo evil > a/.envrc",
        setup="mkdir a; echo mine > a/.envrc",
        check=_noted("a/.envrc"),
    ),
    _left(
        "host",
        "filters and submodules",
        _OBEYS,
        "echo '* filter=lfs' > .gitattributes; echo x > .gitmodules",
        check=_noted(".gitattributes", ".gitmodules"),
    ),
    _left(
        "host",
        "versions of tools",
        _OBEYS,
        "echo x > .tool-versions; echo x > .mise.toml; mkdir .direnv",
        check=_noted(".tool-versions", ".mise.toml", ".direnv"),
    ),
    _left(
        "host",
        "checks before a commit",
        _OBEYS,
        "echo x > .pre-commit-config.yaml; mkdir .husky; echo x > .husky/pre-commit",
        check=_noted(".pre-commit-config.yaml", ".husky"),
    ),
    _left(
        "host",
        "an editor's folder below",
        _OBEYS,
        "mkdir -p a/.vscode; echo x > a/.vscode/tasks.json",
        check=_noted("a/.vscode"),
    ),
    _left(
        "host", "a link out of the folder", _OBEYS, "ln -s @outside@ out; ln -s ../../x up", check=_noted("out", "up")
    ),
    _left(
        "host",
        "settings of a debugger and of vim",
        _OBEYS,
        "echo x > .gdbinit; mkdir a; echo x > a/.exrc",
        check=_noted(".gdbinit", "a/.exrc"),
    ),
)

ATTEMPTS: Final = (
    *(*FILES, *CONFIGURATION, *PROC, *NETWORK, *PROCESSES, *RESOURCES, *KERNEL, *TERMINAL),
    *(*LIMITED, *GIT, *HOST),
)
AREAS: Final = tuple(area for area, _ in groupby(ATTEMPTS, key=lambda attempt: attempt.area))

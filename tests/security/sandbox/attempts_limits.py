"""Rows of the table (`attempts.py`) on the disk budget, the list of system calls, and what tells machines apart.

The disk attempts of `DISK` take far more than the budget of their scene (48 MiB), then wait: one that is still there
after that says GOT. Each of them once was a way past a limit, or is a variant of one.
"""

# ruff: noqa: E501 # a script of a shell is one line

from pathlib import Path
from typing import Final

from tests.security.sandbox.row import Attempt, Check, got, py, refused, row, sh
from tests.security.sandbox.scene import JUDGED, LIMITS, Scene
from toolspeak.agent.sandbox.sandbox import MIB, Ran
from toolspeak.agent.sandbox.seccomp import PLAIN

_WRITTEN: Final = 256 * MIB
"""What a command may write between two looks, on a machine that does other things: a tenth of a second, and more."""
_MAKE: Final = """
import array, mmap, signal, threading
libc.mmap.restype = ctypes.c_void_p
def nameless(size=20 << 20):
    fd = os.open('x', os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink('x')
    os.write(fd, bytes(size))
    return fd
def still_there(count=16):
    time.sleep(3)
    got(count)
"""


def folder_size(scene: Scene) -> int:
    """Add up the blocks of what lies in the folder, by inode."""
    found = {status.st_ino: status.st_blocks for _, status in scene.entries()}
    return sum(found.values()) * 512


def _within(scene: Scene, ran: Ran) -> str:
    size = folder_size(scene)
    return got(scene, ran) or (f"the folder holds {size >> 20} MiB" if size > LIMITS.folder_growth + _WRITTEN else "")


def _in_sum(scene: Scene, ran: Ran) -> str:
    """Check commands that write 40 MB each. The last one starts at most a quarter over the budget, and writes all."""
    size, most = folder_size(scene), LIMITS.folder_growth + LIMITS.folder_growth // 4 + 44 * MIB
    return f"the folder holds {size >> 20} MiB" if size > most else _within(scene, ran)


def _not_told(path: str) -> Check:
    def check(scene: Scene, ran: Ran) -> str:
        secret = Path(path).read_text().strip() if Path(path).is_file() else ""
        return got(scene, ran) or (f"{path} of the host is told" if secret and secret in ran.output else "")

    return check


def _hides(name: str, code: str, never: str = "more than the budget is on the disk", only: str = "") -> Attempt:
    return row("disk", name, never, py(_MAKE + code), check=_within, seconds=60, only=only)


DISK: Final = (
    _hides(
        "files held by mappings only",
        "for n in range(16):\n    fd = nameless()\n    libc.mmap(None, 4096, 1, 1, fd, ctypes.c_long(0))\n    os.close(fd)\nstill_there()",
    ),
    _hides(
        "files in flight",
        "ends = socket.socketpair()\nfor n in range(16):\n    fd = nameless()\n    socket.send_fds(ends[0], [b'x'], [fd])\n    os.close(fd)\nstill_there()",
    ),
    _hides(
        "files in flight in a socket in flight",
        "outer = socket.socketpair()\nfor n in range(16):\n    inner = socket.socketpair()\n    fd = nameless()\n    socket.send_fds(inner[0], [b'x'], [fd])\n    socket.send_fds(outer[0], [b'x'], [inner[1].fileno()])\n    os.close(fd)\n    inner[1].close()\n    inner[0].close()\nstill_there()",
    ),
    _hides(
        "files in flight to nobody",
        "server = socket.socket(socket.AF_UNIX)\nserver.bind('s')\nserver.listen(64)\nfor n in range(16):\n    client = socket.socket(socket.AF_UNIX)\n    client.connect('s')\n    fd = nameless()\n    socket.send_fds(client, [b'x'], [fd])\n    os.close(fd)\n    client.close()\nstill_there()",
    ),
    _hides(
        "files in flight as datagrams",
        "ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\nfor n in range(8):\n    fds = [nameless() for _ in range(4)]\n    socket.send_fds(ends[0], [b'x'], fds)\n    [os.close(fd) for fd in fds]\nstill_there()",
    ),
    _hides(
        "files held by a blocked call",
        "import fcntl\nfreed = []\ndef hold(fd, out):\n    try:\n        while True: os.sendfile(out, fd, 0, 20 << 20)\n    except OSError: freed.append(fd)\nfor n in range(16):\n    fd, ends = nameless(), os.pipe()\n    own = fcntl.fcntl(fd, fcntl.F_DUPFD, 100 + n)\n    os.close(fd)\n    threading.Thread(target=hold, args=(own, ends[1]), daemon=True).start()\n    time.sleep(0.05)\n    os.close(own)\ntime.sleep(3)\nif len(freed) < 5: got(16 - len(freed))\nos._exit(0)",
    ),
    _hides(
        "pages of a deleted file written by mapping",
        "for n in range(16):\n    fd = nameless(0)\n    os.ftruncate(fd, 20 << 20)\n    place = libc.mmap(None, 20 << 20, 3, 1, fd, ctypes.c_long(0))\n    os.close(fd)\n    ctypes.memset(place, 1, 20 << 20)\nstill_there()",
    ),
    _hides(
        "files held in the background",
        "for n in range(10):\n    if os.fork() == 0:\n        os.setsid()\n        fds = [nameless() for _ in range(3)]\n        time.sleep(20)\n        os._exit(0)\nstill_there()",
    ),
    _hides(
        "files of a process that shows nothing",
        "libc.prctl(4, 0, 0, 0, 0)\nfds = [nameless() for n in range(16)]\nstill_there()",
    ),
    _hides(
        "files passed to and fro",
        "a, b = socket.socketpair()\nfds = []\nfor n in range(16):\n    fd = nameless()\n    socket.send_fds(a, [b'x'], [fd])\n    os.close(fd)\nif os.fork() == 0:\n    end = time.time() + 20\n    while time.time() < end:\n        data, got_fds, *_ = socket.recv_fds(b, 1, 1)\n        socket.send_fds(a, [b'x'], got_fds)\n        [os.close(each) for each in got_fds]\n    os._exit(0)\nstill_there()",
    ),
    _hides(
        "a process that goes on by itself",
        "signal.signal(signal.SIGCONT, lambda *_: None)\nfds = []\nif os.fork() == 0:\n    parent = os.getppid()\n    while True:\n        os.kill(parent, signal.SIGCONT)\nends = socket.socketpair()\nfor n in range(16):\n    fd = nameless()\n    socket.send_fds(ends[0], [b'x'], [fd])\n    os.close(fd)\nstill_there()",
    ),
    _hides(
        "files in a folder that cannot be read",
        "os.mkdir('d')\nfor n in range(16):\n    with open(f'd/{n}', 'wb') as file:\n        file.write(bytes(20 << 20))\n    os.chmod('d', 0o300)\nstill_there()",
    ),
    _hides(
        "files in folders without end",
        "for n in range(400):\n    os.mkdir('d')\n    os.chdir('d')\nfor n in range(16):\n    with open(f'{n}', 'wb') as file:\n        file.write(bytes(20 << 20))\nstill_there()",
    ),
    _hides(
        "files with long paths",
        "for n in range(40):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\nfor n in range(16):\n    with open(f'{n}', 'wb') as file:\n        file.write(bytes(20 << 20))\nstill_there()",
    ),
    _hides(
        "many small files",
        "for n in range(10000):\n    with open(f'f{n}', 'wb') as file:\n        file.write(b'x')\nstill_there()",
        "there are more than the budget has",
    ),
    _hides(
        "folders and nothing in them",
        "for n in range(10000):\n    os.mkdir(f'd{n}')\nstill_there()",
        "there are more than the budget has",
    ),
    _hides(
        "files under two names",
        "for n in range(16):\n    with open(f'a{n}', 'wb') as file:\n        file.write(bytes(20 << 20))\n    os.link(f'a{n}', f'b{n}')\n    os.unlink(f'a{n}')\nstill_there()",
    ),
    _hides(
        "space reserved ahead",
        "for n in range(16):\n    fd = os.open(f'f{n}', os.O_CREAT | os.O_RDWR, 0o600)\n    if libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(20 << 20)) == 0: got(n)",
        "the call succeeds",
    ),
    _hides(
        "space reserved by another name",
        "import struct, fcntl\nfd = os.open('f', os.O_CREAT | os.O_RDWR, 0o600)\nwant(lambda: fcntl.ioctl(fd, 0x40305828, struct.pack('hhqqiI4i', 0, 0, 0, 20 << 20, 0, 0, 0, 0, 0, 0)) and '')",
        "the call succeeds",
        only="bwrap",
    ),
    row(
        "disk",
        "one command after another",
        "together they leave more than the budget",
        *(sh(f"for n in 1 2; do head -c 20000000 /dev/zero > f{turn}$n; done; sleep 0.3") for turn in range(6)),
        check=_in_sum,
    ),
    row(
        "disk",
        "over the budget again and again",
        "each command leaves some more",
        *(
            sh(f"for n in 1 2 3 4 5 6 7 8; do head -c 20000000 /dev/zero > f{turn}$n; done; sleep 0.3")
            for turn in range(5)
        ),
        check=_within,
    ),
    row(
        "disk",
        "memory in flight",
        "it has twice what is allowed",
        py(
            "ends = socket.socketpair()\nfor n in range(25):\n    fd = os.memfd_create('x')\n    os.write(fd, bytes(20 << 20))\n    socket.send_fds(ends[0], [b'x'], [fd])\n    os.close(fd)\ntime.sleep(3)\ngot(25)"
        ),
        seconds=15,
    ),
    row(
        "disk",
        "memory held by mappings only",
        "it has twice what is allowed",
        py(
            "libc.mmap.restype = ctypes.c_void_p\nfor n in range(25):\n    fd = os.memfd_create('x')\n    os.write(fd, bytes(20 << 20))\n    libc.mmap(None, 4096, 1, 1, fd, ctypes.c_long(0))\n    os.close(fd)\ntime.sleep(3)\ngot(25)"
        ),
        seconds=15,
    ),
)

_LISTED: Final = ", ".join(f"@nr_{name}@" for name in (*PLAIN, *JUDGED))
_EVERY: Final = f"""
import select
listed = {{{_LISTED}}}
def answer(number):
    '''Make a call in a process of its own: some never return. 256 means that it did not answer with an error.'''
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.set_errno(0)
        result = libc.syscall(number, -1, -1, -1, -1, -1, -1)
        os.write(tell, (b'%d' % ctypes.get_errno()) if result == -1 else b'256')
        os._exit(0)
    os.close(tell)
    said = os.read(ready, 8) if select.select([ready], [], [], 1.0)[0] else b''
    os.close(ready)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return int(said or 256)
# uretprobe and uprobe are the kernel's own: they pass by every filter, and do nothing for a program that calls them.
listed |= {{335, 336}} if os.uname().machine == 'x86_64' else set()
reached = [number for number in range(513) if number not in listed and answer(number) not in (1, 38, 95)]
if reached: got(reached)
print('called', 513 - len(listed))
"""

CALLS: Final = (
    row(
        "calls",
        "every call up to 512 that is not listed",
        "it reaches the kernel",
        py(_EVERY),
        seconds=60,
        only="bwrap",
    ),
    refused("open_tree_attr", "-100, b'.', 1, 0, 0", "calls"),
    refused("io_setup", "1, ctypes.byref((ctypes.c_uint64 * 1)())", "calls"),
    refused("semget", "0, 1, 0o1600", "calls"),
    refused(
        "name_to_handle_at",
        "-100, b'.', ctypes.byref((ctypes.c_uint32 * 40)(128)), ctypes.byref(ctypes.c_int()), 0",
        "calls",
    ),
    refused("personality", "0x400000", "calls"),
    refused("mq_open", "b'q', 0o102, 0o600, 0", "calls"),
    row(
        "calls",
        "calls of a 32-bit processor",
        "one succeeds",
        py(
            "import mmap, platform\nif platform.machine() == 'x86_64':\n    page = mmap.mmap(-1, 4096, prot=7)\n    page.write(bytes.fromhex('b814000000cd80c3'))\n    r = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()\n    if r > 0: got(r)"
        ),
    ),
    row(
        "calls",
        "netlink of the firewall",
        "there is such a socket",
        py("want(lambda: socket.socket(16, 3, 12))\nwant(lambda: socket.socket(16, 3, 9))"),
        only="bwrap",
    ),
    row(
        "calls",
        "a line discipline",
        "a terminal takes it",
        py("import fcntl\na, b = os.openpty()\nwant(lambda: fcntl.ioctl(b, 0x5423, b'\\0\\0\\0\\0'))"),
        only="bwrap",
    ),
)

MACHINE: Final = (
    row("machine", "the kernel's command line", "it is told", sh('[ -n "$(cat /proc/cmdline)" ] && echo GOT; :')),
    row(
        "machine",
        "the boot id",
        "it is told",
        sh("cat /proc/sys/kernel/random/boot_id; cat /proc/1/root/proc/sys/kernel/random/boot_id; :"),
        check=_not_told("/proc/sys/kernel/random/boot_id"),
    ),
    row(
        "machine",
        "disks, modules and devices",
        "they are told",
        sh(
            'for f in partitions diskstats devices interrupts iomem swaps locks; do [ -n "$(cat /proc/$f)" ] && echo GOT $f; done 2>/dev/null; ls /proc/bus/* /proc/fs/* 2>/dev/null && echo GOT; :'
        ),
    ),
    row(
        "machine",
        "what it is made of",
        "it is told",
        sh(
            "ls /sys/class/net /sys/block /sys/class/dmi/id 2>/dev/null && echo GOT; cat /etc/machine-id /var/lib/dbus/machine-id /etc/hostname /etc/fstab 2>/dev/null && echo GOT; :"
        ),
    ),
    row(
        "machine",
        "its identity uncovered",
        "it is told",
        sh(
            "umount /proc/cmdline && echo GOT; umount -l /proc/sys/kernel/random/boot_id && echo GOT; mkdir p; mount -t proc x p && echo GOT; rm -f /proc/cmdline && echo GOT; :"
        ),
        check=_not_told("/proc/sys/kernel/random/boot_id"),
    ),
)

LIMITED: Final = (*DISK, *CALLS, *MACHINE)

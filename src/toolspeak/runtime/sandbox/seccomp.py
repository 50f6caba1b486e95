"""The system calls that no command needs, as a program for the kernel (classic BPF, for seccomp).

Namespaces and capabilities hold most of it already; this holds it a second time, and what they do not: sockets that
know no network namespace (vsock, Bluetooth), young interfaces with a history (io_uring, bpf, userfaultfd), keyrings,
memory that belongs to no process (System V's), and files with the setuid bit, which would be somebody's outside.

Refused calls fail with EPERM; those that a libc tries first, and can do without (clone3, openat2), with ENOSYS.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import pack
from typing import Final, TypeAlias

Instruction: TypeAlias = tuple[int, int, int, int]
Judged: TypeAlias = tuple[tuple[int, int], tuple[Instruction, ...]]

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOWED: Final[Instruction] = (_RETURN, 0, 0, _ALLOW)
_X32: Final = 0x40000000

NAMESPACES: Final = 0x7E020000
"""Every CLONE_NEW… flag that clone takes."""
SETUID_BITS: Final = 0o6000
CREATES: Final = 0o20000100
"""O_CREAT and O_TMPFILE: without them an open has no mode."""
TERMINAL: Final = (0x5412, 0x541C)
"""TIOCSTI types for the user, TIOCLINUX pastes for them."""
FAMILIES: Final = (1, 2, 10, 16)
"""Unix, IPv4, IPv6, netlink: each of them belongs to a network namespace, and ours is empty."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor: its name to the kernel, and its column in the table."""

    arch: int
    column: int
    x32: bool = False


MACHINES: Final = {"x86_64": Machine(0xC000003E, 0, x32=True), "aarch64": Machine(0xC00000B7, 1)}

REFUSED: Final[dict[str, tuple[int, int]]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "mount_setattr": (442, 442),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fanotify_init": (300, 262),
    "memfd_secret": (447, 447),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "open_by_handle_at": (304, 265),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "modify_ldt": (154, -1),
}
"""Never allowed: the number on x86_64, and on aarch64; -1 where there is none."""

MISSING: Final = {"clone3": (435, 435), "openat2": (437, 437)}
"""Their flags lie in memory, where no filter can look; every libc falls back to the older call."""

CLONE: Final = (56, 220)
IOCTL: Final = (16, 29)
SOCKETS: Final = {"socket": (41, 198), "socketpair": (53, 199)}
OPENS: Final = {"open": ((2, -1), 1), "openat": ((257, 56), 2)}
"""With the index of their flags; their mode comes next."""
MODES: Final = {
    "creat": ((85, -1), 1),
    "mknod": ((133, -1), 1),
    "mknodat": ((259, 33), 2),
    "chmod": ((90, -1), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
}
"""With the index of their mode."""


def program(machine: str) -> bytes:
    """Return the filter for a processor, as the kernel and bubblewrap read it."""
    return b"".join(pack("=HBBI", *each) for each in instructions(MACHINES[machine]))


def instructions(machine: Machine) -> Iterator[Instruction]:
    """Write the filter."""
    yield from _beginning(machine)
    for rows, errno in ((REFUSED, _EPERM), (MISSING, _ENOSYS)):
        for number in _numbers(rows.values(), machine):
            yield from ((_EQUAL, 0, 1, number), _error(errno))
    for numbers, body in (*_judged(), *_modes()):
        for number in _numbers((numbers,), machine):
            yield from ((_EQUAL, 0, len(body), number), *body)
    yield _ALLOWED


def _beginning(machine: Machine) -> Iterator[Instruction]:
    yield from ((_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, machine.arch), (_RETURN, 0, 0, _KILL))
    yield (_LOAD, 0, 0, _NUMBER)
    if machine.x32:
        yield from ((_AT_LEAST, 0, 1, _X32), _error(_ENOSYS))


def _judged() -> Iterator[Judged]:
    """Give the calls that depend on an argument, with what is done then; each ends in a return."""
    yield CLONE, (_argument(0), (_ANY_BIT, 0, 1, NAMESPACES), _error(_EPERM), _ALLOWED)
    yield IOCTL, (_argument(1), *_one_of(TERMINAL, _error(_EPERM), _ALLOWED))
    for numbers in SOCKETS.values():
        yield numbers, (_argument(0), *_one_of(FAMILIES, _ALLOWED, _error(_EAFNOSUPPORT)))


def _modes() -> Iterator[Judged]:
    """Give the calls that could make a setuid file."""
    for numbers, index in MODES.values():
        yield numbers, (*_no_setuid(index), _ALLOWED)
    for numbers, index in OPENS.values():
        yield numbers, (_argument(index), (_ANY_BIT, 1, 0, CREATES), _ALLOWED, *_no_setuid(index + 1), _ALLOWED)


def _no_setuid(index: int) -> tuple[Instruction, ...]:
    return (_argument(index), (_ANY_BIT, 0, 1, SETUID_BITS), _error(_EPERM))


def _one_of(values: tuple[int, ...], then: Instruction, otherwise: Instruction) -> Iterator[Instruction]:
    for index, value in enumerate(values):
        yield (_EQUAL, len(values) - index, 0, value)
    yield from (otherwise, then)


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _error(errno: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | errno)


def _numbers(rows: Iterable[tuple[int, int]], machine: Machine) -> Iterator[int]:
    return (row[machine.column] for row in rows if row[machine.column] >= 0)

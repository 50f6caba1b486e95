"""The seccomp filter: the system calls that a command may make, as a classic BPF program for the kernel.

The filter is an allow-list. A deny-list becomes outdated: `open_tree_attr` (467) came with Linux 6.15 and reached the
kernel although its sibling `open_tree` was refused. A call that is on no list here fails with ENOSYS, as on a kernel
without it, so that libraries fall back to the older call. Known calls that no command needs fail with EPERM.

The list has the calls of ordinary programs (shells, git, compilers, Python, Node, Java, databases in a file). It leaves
out: namespaces and mounts, other processes' memory, modules, keyrings, BPF, perf, io_uring and the older AIO,
System V IPC and POSIX queues (memory that belongs to no process), NUMA policy, file handles, and every call that is
younger than this table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, groupby
from struct import pack
from typing import Final, TypeAlias

Instruction: TypeAlias = tuple[int, int, int, int]
SyscallNumbers: TypeAlias = tuple[int, int]
"""The number of a call on x86_64 and on aarch64; -1 where the call does not exist."""
Judged: TypeAlias = tuple[SyscallNumbers, tuple[Instruction, ...]]

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOTTY, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT = 1, 25, 38, 93, 95, 97
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOWED: Final[Instruction] = (_RETURN, 0, 0, _ALLOW)
_X32: Final = 0x40000000
_NO_CALL: Final = 0xFFFFFFFF
"""Call number -1, with which programs test whether unknown calls fail. It has the x32 bit, but is no x32 call."""

NAMESPACES: Final = 0x7E020000
"""Every CLONE_NEW… flag of clone."""
SETUID_BITS: Final = 0o6000
CREATES: Final = 0o20000100
"""O_CREAT and O_TMPFILE: an open without them has no mode argument."""
TERMINAL: Final = (0x5412, 0x541C, 0x541D, 0x5423)
"""TIOCSTI fakes keyboard input, TIOCLINUX pastes, TIOCCONS redirects the console, TIOCSETD loads kernel modules."""
IOCTL_TYPES: Final = (0x5400, 0x8900)
"""ioctl types of terminals (with FIONREAD and FIONBIO) and sockets. For another type, the file decides which driver
receives it, so the number alone says nothing."""
IOCTLS: Final = (0x40049409, 0x4020940D, 0x80086601, 0xC020660B)
"""FICLONE, FICLONERANGE, FS_IOC_GETFLAGS, FS_IOC_FIEMAP. Not FS_IOC_RESVSP, which does the same as `fallocate`."""
FAMILIES: Final = (1, 2, 10)
"""Unix, IPv4, IPv6. Each belongs to a network namespace, and that of the sandbox is empty. vsock does not."""
NETLINK: Final = 16
"""Only with protocol 0 (routes), with which libc lists interfaces."""
PERSONALITIES: Final = (0, 8, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)
"""Plain Linux, 32 bits, the release as 2.6, no random addresses, and -1 (a query). Without READ_IMPLIES_EXEC."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor architecture: its id in the kernel, and its column in the tables."""

    arch: int
    column: int
    x32: bool = False


MACHINES: Final = {"x86_64": Machine(0xC000003E, 0, x32=True), "aarch64": Machine(0xC00000B7, 1)}


def _read(table: str) -> dict[str, SyscallNumbers]:
    """Parse rows of `name x86_64 aarch64`; a single number applies to both."""
    words = (row.split() for row in table.replace("\n", " ").split(","))
    return {name: (int(numbers[0]), int(numbers[-1])) for name, *numbers in words}


PLAIN: Final = _read("""
read 0 63, write 1 64, close 3 57, stat 4 -1, fstat 5 80, lstat 6 -1, poll 7 -1, lseek 8 62,
mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, access 21 -1, pipe 22 -1,
select 23 -1, sched_yield 24 124, mremap 25 216, msync 26 227, mincore 27 232, madvise 28 233, dup 32 23,
dup2 33 -1, pause 34 -1, nanosleep 35 101, getitimer 36 102, alarm 37 -1, setitimer 38 103, getpid 39 172,
sendfile 40 71, connect 42 203, accept 43 202, sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212,
shutdown 48 210, bind 49 200, listen 50 201, getsockname 51 204, getpeername 52 205, setsockopt 54 208,
getsockopt 55 209, fork 57 -1, vfork 58 -1, execve 59 221, exit 60 93, wait4 61 260, kill 62 129, uname 63 160,
fcntl 72 25, flock 73 32, fsync 74 82, fdatasync 75 83, truncate 76 45, ftruncate 77 46, getdents 78 -1,
getcwd 79 17, chdir 80 49, fchdir 81 50, rename 82 -1, mkdir 83 -1, rmdir 84 -1, link 86 -1, unlink 87 -1,
symlink 88 -1, readlink 89 -1, chown 92 -1, fchown 93 55, lchown 94 -1, umask 95 166, gettimeofday 96 169,
getrlimit 97 163, getrusage 98 165, sysinfo 99 179, times 100 153, getuid 102 174, getgid 104 176,
setuid 105 146, setgid 106 144, geteuid 107 175, getegid 108 177, setpgid 109 154, getppid 110 173,
getpgrp 111 -1, setsid 112 157, setreuid 113 145, setregid 114 143, getgroups 115 158, setgroups 116 159,
setresuid 117 147, getresuid 118 148, setresgid 119 149, getresgid 120 150, getpgid 121 155, setfsuid 122 151,
setfsgid 123 152, getsid 124 156, capget 125 90, capset 126 91, rt_sigpending 127 136, rt_sigtimedwait 128 137,
rt_sigqueueinfo 129 138, rt_sigsuspend 130 133, sigaltstack 131 132, utime 132 -1, statfs 137 43,
fstatfs 138 44, getpriority 140 141, setpriority 141 140, sched_setparam 142 118, sched_getparam 143 121,
sched_setscheduler 144 119, sched_getscheduler 145 120, sched_get_priority_max 146 125,
sched_get_priority_min 147 126, sched_rr_get_interval 148 127, mlock 149 228, munlock 150 229, mlockall 151 230,
munlockall 152 231, prctl 157 167, arch_prctl 158 -1, setrlimit 160 164, sync 162 81, gettid 186 178,
readahead 187 213, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, getxattr 191 8, lgetxattr 192 9,
fgetxattr 193 10, listxattr 194 11, llistxattr 195 12, flistxattr 196 13, removexattr 197 14,
lremovexattr 198 15, fremovexattr 199 16, tkill 200 130, time 201 -1, futex 202 98, sched_setaffinity 203 122,
sched_getaffinity 204 123, epoll_create 213 -1, getdents64 217 61, set_tid_address 218 96,
restart_syscall 219 128, fadvise64 221 223, timer_create 222 107, timer_settime 223 110, timer_gettime 224 108,
timer_getoverrun 225 109, timer_delete 226 111, clock_gettime 228 113, clock_getres 229 114,
clock_nanosleep 230 115, exit_group 231 94, epoll_wait 232 -1, epoll_ctl 233 21, tgkill 234 131, utimes 235 -1,
waitid 247 95, ioprio_set 251 30, ioprio_get 252 31, inotify_init 253 -1, inotify_add_watch 254 27,
inotify_rm_watch 255 28, mkdirat 258 34, fchownat 260 54, futimesat 261 -1, newfstatat 262 79, unlinkat 263 35,
renameat 264 38, linkat 265 37, symlinkat 266 36, readlinkat 267 78, faccessat 269 48, pselect6 270 72,
ppoll 271 73, set_robust_list 273 99, get_robust_list 274 100, splice 275 76, tee 276 77,
sync_file_range 277 84, utimensat 280 88, epoll_pwait 281 22, signalfd 282 -1, timerfd_create 283 85,
eventfd 284 -1, timerfd_settime 286 86, timerfd_gettime 287 87, accept4 288 242, signalfd4 289 74,
eventfd2 290 19, epoll_create1 291 20, dup3 292 24, pipe2 293 59, inotify_init1 294 26, preadv 295 69,
pwritev 296 70, rt_tgsigqueueinfo 297 240, recvmmsg 299 243, prlimit64 302 261, syncfs 306 267,
sendmmsg 307 269, getcpu 309 168, sched_setattr 314 274, sched_getattr 315 275, renameat2 316 276,
seccomp 317 277, getrandom 318 278, memfd_create 319 279, execveat 322 281, membarrier 324 283, mlock2 325 284,
copy_file_range 326 285, preadv2 327 286, pwritev2 328 287, pkey_mprotect 329 288, pkey_alloc 330 289,
pkey_free 331 290, statx 332 291, rseq 334 293, pidfd_send_signal 424, pidfd_open 434, close_range 436,
faccessat2 439, epoll_pwait2 441, landlock_create_ruleset 444, landlock_add_rule 445,
landlock_restrict_self 446, futex_waitv 449, cachestat 451, map_shadow_stack 453 -1
""")
"""Calls that are allowed with any arguments."""

CLONE: Final = (56, 220)
IOCTL: Final = (16, 29)
PERSONALITY: Final = (135, 92)
SOCKETS: Final = {"socket": (41, 198), "socketpair": (53, 199)}
OPENS: Final = {"open": ((2, -1), 1), "openat": ((257, 56), 2)}
"""With the index of the flags argument; the mode is the next argument."""
MODES: Final = {
    "creat": ((85, -1), 1),
    "mknod": ((133, -1), 1),
    "mknodat": ((259, 33), 2),
    "chmod": ((90, -1), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
}
"""With the index of the mode argument."""

FALLOCATE: Final = (285, 47)
"""Fails as on a file system without it; libc then writes zeros. A `fallocate` takes gigabytes of a disk in a
millisecond, and the disk budget (`disk.py`) checks only ten times a second."""

REFUSED: Final = _read("""
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, setns 308 268, unshare 272 97, mount_setattr 442,
open_tree 428, move_mount 429, fsopen 430, fsconfig 431, fsmount 432, fspick 433, open_tree_attr 467,
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440, kcmp 312 272,
pidfd_getfd 438, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425, io_uring_enter 426,
io_uring_register 427, fanotify_init 300 262, memfd_secret 447, add_key 248 217, request_key 249 218, keyctl 250 219,
shmget 29 194, msgget 68 186, settimeofday 164 170, clock_settime 227 112, adjtimex 159 171, clock_adjtime 305 266,
sethostname 170 161, setdomainname 171 162, init_module 175 105, finit_module 313 273, delete_module 176 106,
kexec_load 246 104, kexec_file_load 320 294, reboot 169 142, swapon 167 224, swapoff 168 225, acct 163 89,
quotactl 179 60, quotactl_fd 443, syslog 103 116, open_by_handle_at 304 265, lookup_dcookie 212 18, vhangup 153 58,
iopl 172 -1, ioperm 173 -1, modify_ldt 154 -1
""")
"""Fail with EPERM instead of ENOSYS: programs then report missing permission, and not an old kernel."""

MISSING: Final = {"clone3": (435, 435), "openat2": (437, 437)}
"""Their flags are in memory, which a filter cannot read; every libc falls back to the older call. They are on no other
list, so they fail with ENOSYS. The names are here for tests and readers."""


def program(machine: str) -> bytes:
    """Return the filter for a processor, in the binary form that the kernel and bubblewrap read."""
    return b"".join(pack("=HBBI", *each) for each in instructions(MACHINES[machine]))


def instructions(machine: Machine) -> Iterator[Instruction]:
    """Yield the instructions of the filter. Calls with argument checks come first; unlisted calls end in ENOSYS."""
    yield from _beginning(machine)
    for row, body in (*_judged(), *_modes()):
        for number in _numbers((row,), machine):
            yield from ((_EQUAL, 0, len(body), number), *body)
    for first, last in _ranges(_numbers(PLAIN.values(), machine)):
        yield from ((_AT_LEAST, 0, 2, first), (_AT_LEAST, 1, 0, last + 1), _ALLOWED)
    for number in _numbers(REFUSED.values(), machine):
        yield from ((_EQUAL, 0, 1, number), _error(_EPERM))
    yield _error(_ENOSYS)


def _beginning(machine: Machine) -> Iterator[Instruction]:
    """Kill a process that uses the call numbers of another ABI (i386, x32): the tables do not apply to those."""
    # A number is another call in another ABI, so this check comes before all others.
    yield from ((_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, machine.arch), (_RETURN, 0, 0, _KILL))
    yield (_LOAD, 0, 0, _NUMBER)
    if machine.x32:
        yield from ((_EQUAL, 0, 1, _NO_CALL), _error(_ENOSYS), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL))


def _judged() -> Iterator[Judged]:
    """Yield the calls that depend on an argument, each with the code that decides. The code ends in a return."""
    yield CLONE, (_argument(0), (_ANY_BIT, 0, 1, NAMESPACES), _error(_EPERM), _ALLOWED)
    yield IOCTL, (*_ioctl(),)
    yield PERSONALITY, (_argument(0), *_one_of(PERSONALITIES, _ALLOWED), _error(_EPERM))
    yield FALLOCATE, (_error(_EOPNOTSUPP),)
    for row in SOCKETS.values():
        families = (_argument(0), *_one_of(FAMILIES, _ALLOWED), (_EQUAL, 1, 0, NETLINK), _error(_EAFNOSUPPORT))
        yield row, (*families, _argument(2), *_one_of((0,), _ALLOWED), _error(_EPROTONOSUPPORT))


def _ioctl() -> Iterator[Instruction]:
    yield _argument(1)
    # The order matters: these have an allowed type, so they must be refused before the type is compared.
    yield from _one_of(TERMINAL, _error(_EPERM))
    yield from _one_of(IOCTLS, _ALLOWED)
    yield (_AND, 0, 0, 0xFF00)
    yield from _one_of(IOCTL_TYPES, _ALLOWED)
    yield _error(_ENOTTY)


def _modes() -> Iterator[Judged]:
    """Yield the calls that could create a setuid file."""
    for row, index in MODES.values():
        yield row, (*_no_setuid(index), _ALLOWED)
    for row, index in OPENS.values():
        yield row, (_argument(index), (_ANY_BIT, 1, 0, CREATES), _ALLOWED, *_no_setuid(index + 1), _ALLOWED)


def _no_setuid(index: int) -> tuple[Instruction, ...]:
    return (_argument(index), (_ANY_BIT, 0, 1, SETUID_BITS), _error(_EPERM))


def _one_of(values: tuple[int, ...], then: Instruction) -> Iterator[Instruction]:
    """Yield code that executes `then` if the loaded word is one of the values."""
    for value in values:
        yield from ((_EQUAL, 0, 1, value), then)


def _argument(index: int) -> Instruction:
    """Load the lower half of an argument. The kernel takes these as ints, and ignores the upper half too."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _error(errno: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | errno)


def _numbers(rows: Iterable[SyscallNumbers], machine: Machine) -> Iterator[int]:
    return (row[machine.column] for row in rows if row[machine.column] >= 0)


def _ranges(numbers: Iterable[int]) -> Iterator[SyscallNumbers]:
    """Group consecutive numbers into ranges, which makes the filter shorter."""
    position = count()
    for _, group in groupby(sorted(numbers), lambda number: number - next(position)):
        run = [*group]
        yield run[0], run[-1]

"""The filter of system calls, run as the kernel runs it: for both processors, on whichever this is (RUN-5)."""

import re
from pathlib import Path
from struct import iter_unpack

import pytest

from toolspeak.agent.sandbox.seccomp import (
    CLONE,
    FALLOCATE,
    IOCTL,
    MACHINES,
    MISSING,
    MODES,
    OPENS,
    PERSONALITY,
    PLAIN,
    REFUSED,
    SOCKETS,
    SyscallNumbers,
    program,
)

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOTTY, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT = (
    0x50000 | errno for errno in (1, 25, 38, 93, 95, 97)
)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
NEWER = {"cachestat": 451, "fchmodat2": 452, "map_shadow_stack": 453, "open_tree_attr": 467}
"""Younger than the headers of some systems; on both processors they have the same number."""
JUDGED: dict[str, SyscallNumbers] = {
    "clone": CLONE,
    "ioctl": IOCTL,
    "personality": PERSONALITY,
    "fallocate": FALLOCATE,
    **SOCKETS,
    **{name: row for name, (row, _) in (*OPENS.items(), *MODES.items())},
}
ALIASES = {"newfstatat": "fstatat"}
"""Names in the generic header."""
both = pytest.mark.parametrize("machine", MACHINES)


def judge(machine: str, number: int, *words: int, arch: int | None = None) -> int:
    """Run the filter over one call."""
    code = list(iter_unpack("=HBBI", program(machine)))
    padded = (*words, *(0 for _ in range(6 - len(words))))
    data = {0: number, 4: MACHINES[machine].arch if arch is None else arch}
    data |= {16 + 8 * index: word & 0xFFFFFFFF for index, word in enumerate(padded)}
    at = loaded = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        if operation == 0x06:
            return value
        if operation in (0x20, 0x54):
            loaded = data[value] if operation == 0x20 else loaded & value
            continue
        held = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[operation]
        at += yes if held else no


def number(machine: str, row: tuple[int, int]) -> int:
    return row[MACHINES[machine].column]


@both
def test_only_what_is_on_the_list_is_allowed_run5(machine: str) -> None:
    """Each number up to 1024: allowed, judged by its arguments, refused, or as if the kernel did not have it."""
    plain, judged, refused = (
        {number(machine, row) for row in rows.values() if number(machine, row) >= 0}
        for rows in (PLAIN, JUDGED, REFUSED)
    )
    assert not plain & judged
    assert not (plain | judged) & refused
    for call in set(range(1024)) - judged:
        wanted = ALLOW if call in plain else EPERM if call in refused else ENOSYS
        assert judge(machine, call) == wanted, call
    for row in MISSING.values():
        assert judge(machine, number(machine, row)) == ENOSYS


@both
def test_the_tables_name_each_call_once_run5(machine: str) -> None:
    names = [*PLAIN, *JUDGED, *REFUSED, *MISSING]
    assert len(set(names)) == len(names)
    numbers = [number(machine, row) for rows in (PLAIN, JUDGED, REFUSED, MISSING) for row in rows.values()]
    known = [each for each in numbers if each >= 0]
    assert len(set(known)) == len(known)


def test_both_processors_have_what_a_program_cannot_do_without_run5() -> None:
    """The older calls are not on aarch64; for each of them there is the newer one, which both allow."""
    newer = {
        "access": "faccessat",
        "dup2": "dup3",
        "epoll_create": "epoll_create1",
        "epoll_wait": "epoll_pwait",
        "eventfd": "eventfd2",
        "inotify_init": "inotify_init1",
        "lstat": "newfstatat",
        "stat": "newfstatat",
        "mkdir": "mkdirat",
        "link": "linkat",
        "unlink": "unlinkat",
        "rmdir": "unlinkat",
        "symlink": "symlinkat",
        "readlink": "readlinkat",
        "rename": "renameat2",
        "chown": "fchownat",
        "lchown": "fchownat",
        "pipe": "pipe2",
        "poll": "ppoll",
        "select": "pselect6",
        "signalfd": "signalfd4",
        "getdents": "getdents64",
        "utime": "utimensat",
        "utimes": "utimensat",
        "futimesat": "utimensat",
        "pause": "ppoll",
        "alarm": "setitimer",
        "getpgrp": "getpgid",
        "time": "gettimeofday",
        "fork": "execve",
        "vfork": "execve",
        "arch_prctl": "prctl",
        "map_shadow_stack": "prctl",
    }
    assert {name for name, row in PLAIN.items() if row[1] < 0} == set(newer)
    assert all(min(PLAIN[name]) >= 0 for name in newer.values())


@both
def test_another_processor_s_calls_end_the_process_run5(machine: str) -> None:
    assert judge(machine, 0, arch=0x40000003) == KILL


def test_calls_of_x32_end_the_process_and_no_call_is_missing_run5() -> None:
    assert judge("x86_64", 0x40000000 + 39) == KILL
    assert judge("x86_64", 0x40000000 + 512) == KILL
    assert judge("x86_64", 0xFFFFFFFF) == ENOSYS
    assert judge("aarch64", 0x40000000 + 39) == ENOSYS


@both
def test_threads_are_made_and_namespaces_are_not_run5(machine: str) -> None:
    clone = number(machine, CLONE)
    assert judge(machine, clone, 0x3D0F00) == ALLOW
    for bit in (17, 25, 26, 27, 28, 29, 30):
        assert judge(machine, clone, 1 << bit | 17) == EPERM


@both
def test_sockets_are_those_of_a_network_namespace_run5(machine: str) -> None:
    allowed = {family for family in range(64) if judge(machine, number(machine, SOCKETS["socket"]), family, 1) == ALLOW}
    assert allowed == {1, 2, 10, 16}
    assert judge(machine, number(machine, SOCKETS["socket"]), 16, 3, 12) == EPROTONOSUPPORT, "netfilter"
    assert judge(machine, number(machine, SOCKETS["socketpair"]), 1, 1) == ALLOW
    assert judge(machine, number(machine, SOCKETS["socket"]), 40, 1) == EAFNOSUPPORT


@both
def test_nobody_types_for_the_user_run5(machine: str) -> None:
    assert judge(machine, number(machine, IOCTL), 0, 0x5412) == EPERM
    assert judge(machine, number(machine, IOCTL), 0, 0x541C) == EPERM
    assert judge(machine, number(machine, IOCTL), 0, 0x5423) == EPERM
    assert judge(machine, number(machine, IOCTL), 0, 0x5401) == ALLOW


@both
def test_ioctls_are_those_of_terminals_sockets_and_clones_run5(machine: str) -> None:
    ioctl = number(machine, IOCTL)
    for word in (0x541B, 0x5421, 0x5451, 0x80045430, 0x8912, 0x40049409, 0x80086601):
        assert judge(machine, ioctl, 0, word) == ALLOW, hex(word)
    for word in (0x40305828, 0x4030582A, 0x40305839, 0x40086602, 0xC0185879, 0xB701, 0xAE00, 1, 2):
        assert judge(machine, ioctl, 0, word) == ENOTTY, hex(word)


@both
def test_space_is_not_reserved_ahead_and_addresses_stay_random_run5(machine: str) -> None:
    assert judge(machine, number(machine, FALLOCATE), 3, 0, 0, 1 << 30) == EOPNOTSUPP
    assert judge(machine, number(machine, PERSONALITY), 0x40000) == ALLOW
    assert judge(machine, number(machine, PERSONALITY), 0x400000) == EPERM


@both
def test_no_call_makes_a_setuid_file_run5(machine: str) -> None:
    for row, index in MODES.values():
        if number(machine, row) >= 0:
            before = (0,) * index
            assert judge(machine, number(machine, row), *before, 0o755) == ALLOW
            assert judge(machine, number(machine, row), *before, 0o4755) == EPERM
            assert judge(machine, number(machine, row), *before, 0o2755) == EPERM
    row, index = OPENS["openat"]
    assert judge(machine, number(machine, row), 0, 0, 0o100, 0o4755) == EPERM
    assert judge(machine, number(machine, row), 0, 0, 0o20200000, 0o4755) == EPERM
    assert judge(machine, number(machine, row), 0, 0, 0o100, 0o644) == ALLOW
    assert judge(machine, number(machine, row), 0, 0, 0, 0o4755) == ALLOW, "without O_CREAT the mode is nothing"


@pytest.mark.parametrize("machine", [name for name, header in HEADERS.items() if header.exists()] or ["none"])
def test_the_numbers_are_the_kernel_s(machine: str) -> None:
    """Where the headers of the kernel lie, they are compared; CI has them."""
    if machine == "none":
        pytest.skip("no headers of the kernel here")
    text = HEADERS[machine].read_text()
    known = {name: int(value) for name, value in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    rows = {**PLAIN, **REFUSED, **MISSING, **JUDGED}
    if machine == "aarch64":
        rows["map_shadow_stack"] = (453, 453)
    wrong = {
        name: number(machine, row)
        for name, row in rows.items()
        if known.get(ALIASES.get(name, name) if machine == "aarch64" else name, -1) != number(machine, row)
    }
    assert {name: value for name, value in NEWER.items() if name in wrong} == wrong

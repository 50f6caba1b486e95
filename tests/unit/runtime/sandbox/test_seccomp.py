"""The filter of system calls, run as the kernel runs it: for both processors, on whichever this is (RUN-5)."""

import re
from pathlib import Path
from struct import iter_unpack

import pytest

from toolspeak.runtime.sandbox.seccomp import CLONE, IOCTL, MACHINES, MISSING, MODES, OPENS, REFUSED, SOCKETS, program

ALLOW, KILL, EPERM, ENOSYS, EAFNOSUPPORT = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50061
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
NEWER = {"fchmodat2"}
"""Younger than the headers of some systems."""
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
        if operation == 0x20:
            loaded = data[value]
            continue
        held = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[operation]
        at += yes if held else no


def number(machine: str, row: tuple[int, int]) -> int:
    return row[MACHINES[machine].column]


@both
def test_refused_calls_fail_and_others_do_not_run5(machine: str) -> None:
    for name, row in REFUSED.items():
        if number(machine, row) >= 0:
            assert judge(machine, number(machine, row)) == EPERM, name
    for row in MISSING.values():
        assert judge(machine, number(machine, row)) == ENOSYS
    named = {number(machine, row) for row in (*REFUSED.values(), *MISSING.values())}
    judged = {number(machine, row) for row in (CLONE, IOCTL, *SOCKETS.values())}
    judged |= {number(machine, row) for row, _ in (*OPENS.values(), *MODES.values())}
    assert all(judge(machine, call) == ALLOW for call in range(600) if call not in named | judged)


@both
def test_another_processor_s_calls_end_the_process_run5(machine: str) -> None:
    assert judge(machine, 0, arch=0x40000003) == KILL


def test_calls_of_x32_are_missing_run5() -> None:
    assert judge("x86_64", 0x40000000 + 165) == ENOSYS


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
    assert judge(machine, number(machine, SOCKETS["socket"]), 40, 1) == EAFNOSUPPORT


@both
def test_nobody_types_for_the_user_run5(machine: str) -> None:
    assert judge(machine, number(machine, IOCTL), 0, 0x5412) == EPERM
    assert judge(machine, number(machine, IOCTL), 0, 0x541C) == EPERM
    assert judge(machine, number(machine, IOCTL), 0, 0x5401) == ALLOW


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
    rows = {**REFUSED, **MISSING, **SOCKETS, "clone": CLONE, "ioctl": IOCTL}
    rows |= {name: row for name, (row, _) in (*OPENS.items(), *MODES.items())}
    wrong = {name: number(machine, row) for name, row in rows.items() if known.get(name, -1) != number(machine, row)}
    assert set(wrong) <= NEWER

"""Attacks on the tools for files: nothing outside the folder is read, changed or seen (RUN-4, RUN-5)."""

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.agent.tools.scene import text_of
from tests.unit.agent.tools.test_files import Desk
from toolspeak.agent.tools.folder import LARGEST

SECRET = "the secret of somebody else"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Make a folder beside the run's, whose name begins as that of the run's does."""
    made = tmp_path / "work-of-another"
    made.mkdir()
    (made / "secret").write_text(SECRET)
    return made


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "own").write_text("own text")
    (made / "sub").mkdir()
    return made


@pytest.fixture
def desk(inside: Path, outside: Path) -> Desk:
    del outside
    return Desk(inside)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def seen(desk: Desk, path: str) -> Iterator[str]:
    """Try everything on a path, and return what was said."""
    tries: list[tuple[str, dict[str, object]]] = [
        ("read_file", {}),
        ("list_files", {"depth": 8}),
        ("edit_file", {"old": "secret", "new": "stolen"}),
        ("write_file", {"content": "overwritten"}),
    ]
    for name, arguments in tries:
        result = desk.result(name, path=path, **arguments)
        assert result.is_error, (name, path, text_of(result))
        yield text_of(result)


ESCAPES = [
    "../work-of-another/secret",
    "..",
    "../",
    "sub/../../work-of-another/secret",
    "./../work-of-another/secret",
    "sub/../sub/../../work-of-another/secret",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "{inside}/../work-of-another/secret",
    "{inside}-of-another/secret",
    "{outside}/secret",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd",
    "/proc/self/environ",
    "/dev/zero",
    "~/.ssh/id_rsa",
    "~root/.profile",
    "nul\0l",
    "own\0/../../etc/passwd",
    "x" * 300,
    "é" * 200,
    "/".join(["deep"] * 2000),
    "half\ud800",
    "bytes\udcff",
]


@pytest.mark.parametrize("path", ESCAPES, ids=lambda path: ascii(path)[:40])
def test_no_path_leads_out_run4_run5(desk: Desk, inside: Path, outside: Path, path: str) -> None:
    path = path.replace("{inside}", str(inside)).replace("{outside}", str(outside))
    assert not any(SECRET in said or "root:" in said or "Error" in said for said in seen(desk, path))
    assert (outside / "secret").read_text() == SECRET
    assert names(outside.parent) == ["work", "work-of-another"]


LINKS = {
    "a link to a file outside": ("link", "{outside}/secret", "link"),
    "a relative link out": ("link", "../work-of-another/secret", "link"),
    "a link to a folder outside": ("link", "{outside}", "link/secret"),
    "a link to /etc": ("link", "/etc", "link/passwd"),
    "a link to the root": ("link", "/", "link/etc/passwd"),
    "a link in a folder": ("sub/link", "../..", "sub/link/work-of-another/secret"),
    "a link to itself": ("link", "link", "link"),
    "a link that leads nowhere": ("link", "{outside}/new", "link"),
    "a link to /proc/self/root": ("link", "/proc/self/root", "link/etc/passwd"),
    "a link to an open file": ("link", "/proc/self/fd/0", "link"),
    "a link to the environment": ("link", "/proc/self/environ", "link"),
    "a link that stays inside": ("link", "own", "link"),
    "a link before dots": ("link", "{outside}", "link/x/../secret"),
}


@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_followed_run4_run5(desk: Desk, inside: Path, outside: Path, name: str) -> None:
    where, target, path = LINKS[name]
    (inside / where).symlink_to(target.replace("{outside}", str(outside)))
    assert not any(SECRET in said or "root:" in said for said in seen(desk, path))
    assert (outside / "secret").read_text() == SECRET
    assert names(outside) == ["secret"]
    assert (inside / where).is_symlink()
    assert (inside / "own").read_text() == "own text"


def test_a_listing_shows_links_but_not_where_they_lead_run4(desk: Desk, inside: Path, outside: Path) -> None:
    (inside / "link").symlink_to(outside)
    (inside / "sub" / "etc").symlink_to("/etc")
    assert desk.told("list_files", depth=8) == "link  (link)\nown  8 bytes\nsub/\n  etc  (link)"


def test_dots_behind_a_link_mean_the_folder_of_the_link(desk: Desk, inside: Path, outside: Path) -> None:
    (inside / "link").symlink_to(outside)
    assert desk.told("read_file", path="link/../own") == "own text"


def test_a_folder_that_is_swapped_for_a_link_again_and_again_leads_nowhere_run4_run5(
    desk: Desk, inside: Path, outside: Path
) -> None:
    """Who checks a path and then uses it loses this race sooner or later."""
    (inside / "real").mkdir()
    (inside / "real" / "secret").write_text("harmless")
    (inside / "link").symlink_to(outside)
    over = threading.Event()

    def swap() -> None:
        steps = itertools.cycle((("real", "name"), ("name", "real"), ("link", "name"), ("name", "link")))
        for number, (one, other) in enumerate(steps):
            if over.is_set():
                return
            if other == "name" and os.path.lexists(inside / "name"):  # a write has just made it
                (inside / "name").rename(inside / f"made-{number}")
            with contextlib.suppress(OSError):
                (inside / one).rename(inside / other)

    swapping = threading.Thread(target=swap)
    swapping.start()
    said = {True: 0, False: 0}
    until = time.monotonic() + 2
    try:
        while time.monotonic() < until:
            read = desk.result("read_file", path="name/secret")
            wrote = desk.result("write_file", path="name/new", content="harmless")
            listed = desk.result("list_files", depth=3)
            said[read.is_error] += 1
            assert SECRET not in text_of(read)
            assert wrote.is_error or text_of(wrote).startswith("'name/new' was")
            assert f"secret  {len(SECRET)} bytes" not in text_of(listed)
    finally:
        over.set()
        swapping.join()
    assert names(outside) == ["secret"]
    assert (outside / "secret").read_text() == SECRET
    assert min(said.values()) > 0, said  # both were met: the race was run


def test_a_file_that_is_swapped_for_a_link_is_never_written_through_run4(
    desk: Desk, inside: Path, outside: Path
) -> None:
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (inside / "file").unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):  # a write was faster
                (inside / "file").symlink_to(outside / "secret")
            (inside / "file").unlink(missing_ok=True)

    swapping = threading.Thread(target=swap)
    swapping.start()
    until = time.monotonic() + 1
    try:
        while time.monotonic() < until:
            desk.result("write_file", path="file", content="overwritten")
            assert SECRET not in text_of(desk.result("read_file", path="file"))
    finally:
        over.set()
        swapping.join()
    assert (outside / "secret").read_text() == SECRET


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_takes_a_files_place_in_the_worst_moment_is_not_opened_run4(
    desk: Desk, inside: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Between the look at a file and its opening."""
    (inside / "link").symlink_to(outside / "secret")
    os.mkfifo(inside / "pipe")
    look = os.stat

    def swap(path: Any, **more: Any) -> os.stat_result:  # noqa: ANN401 # as `os.stat`
        found = look(path, **more)
        if path == "own":
            (inside / what).rename(inside / "own")
            monkeypatch.setattr(os, "stat", look)
        return found

    monkeypatch.setattr(os, "stat", swap)
    waited = threading.Event()

    def let_go() -> None:
        waited.set()
        os.close(os.open(inside / "own", os.O_RDWR | os.O_NONBLOCK))

    rescue = threading.Timer(20, let_go)
    rescue.daemon = True
    rescue.start()  # who waits for the pipe's other end is let go, and found out
    assert f"'own' is a {'symbolic link' if what == 'link' else 'pipe'}" in desk.error("read_file", path="own")
    rescue.cancel()
    assert not waited.is_set()
    assert os.stat is look


def test_a_file_with_two_names_is_not_changed_under_the_other_run4(desk: Desk, inside: Path, outside: Path) -> None:
    os.link(outside / "secret", inside / "hard")
    desk.told("write_file", path="hard", content="mine")
    assert (outside / "secret").read_text() == SECRET
    os.link(outside / "secret", inside / "edited")
    desk.told("edit_file", path="edited", old="secret", new="gift")
    assert (outside / "secret").read_text() == SECRET
    assert (inside / "edited").read_text() == "the gift of somebody else"


def test_pipes_sockets_and_devices_are_not_opened_and_nobody_waits_run4(
    desk: Desk, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(inside / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(inside)  # a socket's own path must be short
    listener.bind("socket")
    others = ["pipe", "socket"]
    if os.geteuid() == 0:
        os.mknod(inside / "zero", 0o666 | 0o020000, os.makedev(1, 5))
        others.append("zero")
    began = time.monotonic()
    for name in others:
        for said in seen(desk, name):
            assert f"{name!r} is a" in said
    assert time.monotonic() - began < 30, "a pipe without another end is waited for until the test is given up"
    listener.close()


def test_a_pipe_that_takes_the_place_of_a_file_holds_up_nobody_run4(desk: Desk, inside: Path) -> None:
    over = threading.Event()
    (inside / "file").write_text("text")
    os.mkfifo(inside / "pipe")

    def swap() -> None:
        while not over.is_set():
            for one, other in (("file", "name"), ("name", "file"), ("pipe", "name"), ("name", "pipe")):
                (inside / one).rename(inside / other)

    swapping = threading.Thread(target=swap)
    swapping.start()
    until, slowest = time.monotonic() + 1, 0.0
    try:
        while time.monotonic() < until:
            began = time.monotonic()
            desk.result("read_file", path="name")
            slowest = max(slowest, time.monotonic() - began)
    finally:
        over.set()
        swapping.join()
    assert slowest < 20


def test_a_huge_file_costs_nothing_run4(desk: Desk, inside: Path) -> None:
    with (inside / "huge").open("wb") as huge:
        huge.truncate(1 << 40)
    began = time.monotonic()
    assert "at most" in desk.error("read_file", path="huge")
    assert "at most" in desk.error("edit_file", path="huge", old="a", new="b")
    assert time.monotonic() - began < 20, "a terabyte takes longer"


def test_an_edit_cannot_blow_up_a_file_run4(desk: Desk, inside: Path) -> None:
    (inside / "many").write_text("a" * 1_000_000)
    said = desk.error("edit_file", path="many", old="a", new="b" * 1_000_000, all=True)  # a terabyte, if it were made
    assert said == f"'many' would be too large; at most {LARGEST} bytes are written."
    assert (inside / "many").stat().st_size == 1_000_000


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/.git/config",
        ".GIT/config",
        ".git",
        "sub/../.git/config",
        ".toolspeak/x",
        "sub/toolspeak.toml",
    ],
)
def test_what_commands_programs_outside_is_not_written_run5(desk: Desk, inside: Path, path: str) -> None:
    assert "is read-only here" in desk.error("write_file", path=path, content="rm -rf ~")
    assert names(inside) == ["own", "sub"]
    (inside / ".git").mkdir()
    (inside / ".git" / "config").write_text("[core]")
    assert desk.told("read_file", path=".git/config") == "[core]"
    assert desk.error("edit_file", path=".git/config", old="[core]", new="[alias]")
    assert (inside / ".git" / "config").read_text() == "[core]"


def test_names_and_texts_do_not_move_the_cursor_run4(desk: Desk, inside: Path) -> None:
    name = "red\x1b[31m\nfake\t\u202e"
    (inside / name).write_text("\x1b]0;title\x07 \x9b2J \u202ebackwards\r new \ttab \u200d\n")
    assert desk.told("list_files") == "own  8 bytes\nred\\x1b[31m\\nfake\\t\\u202e  43 bytes\nsub/"
    assert desk.told("read_file", path=name) == ("\\x1b]0;title\\x07 \\x9b2J \\u202ebackwards\\r new \ttab \u200d")
    assert all(char.isprintable() or char == "\n" for char in desk.error("read_file", path=name + "\x1b"))


def test_a_write_that_fails_leaves_nothing_behind_run4(
    desk: Desk, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/secret/place")

    monkeypatch.setattr(os, "rename", full)
    assert desk.error("write_file", path="own", content="new") == "It cannot be done: No space left on device."
    assert names(inside) == ["own", "sub"]
    assert (inside / "own").read_text() == "own text"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["..", ".", "sub", "own", "link", "", "work", "secret", "\u2025", "..\\", "%2e%2e"]), max_size=8
    )
)
def test_no_path_of_any_parts_leads_out_run4(desk: Desk, inside: Path, outside: Path, parts: list[str]) -> None:
    if not (inside / "link").is_symlink():
        (inside / "link").symlink_to(outside)
    for path in ("/".join(parts), f"{inside}/{'/'.join(parts)}"):
        assert SECRET not in text_of(desk.result("read_file", path=path))
        desk.result("write_file", path=path, content="overwritten")
        assert f"secret  {len(SECRET)} bytes" not in text_of(desk.result("list_files", path=path, depth=8))
    assert (outside / "secret").read_text() == SECRET
    assert names(outside) == ["secret"]
    assert names(outside.parent) == ["work", "work-of-another"]


def test_many_calls_leave_no_descriptor_open_run4(desk: Desk, inside: Path) -> None:
    (inside / "link").symlink_to("/etc")
    for path in ("own", "nothing", "link/x", "sub/a/b/c", "../x"):
        desk.result("read_file", path=path)
    before = len(names(Path("/proc/self/fd")))
    for path in ("own", "nothing", "link/x", "sub/a/b/c", "../x", "sub"):
        for _ in range(20):
            desk.result("read_file", path=path)
            desk.result("list_files", path=path, depth=8)
            desk.result("write_file", path=f"{path}/x", content="")
    assert len(names(Path("/proc/self/fd"))) <= before


@pytest.mark.parametrize("path", ["x" * 256, f"sub/{'x' * 256}/y", "/".join(["sub"] * 1100), "\u00e9" * 128])
def test_a_path_that_no_file_system_has_is_refused_before_it_is_tried_run4(desk: Desk, path: str) -> None:
    assert all("the path is too long" in told for told in seen(desk, path))

"""Settings for every test.

`HYPOTHESIS_PROFILE` picks how hard properties are tried: `dev` (default), `ci` (the same examples every time), `quick`.
`--share N` runs about one in N cases of long tables, and everything else: see `testkit/share.py`.
"""

import gc
import os
import socket

import pytest
from hypothesis import settings

from testkit.share import shared

settings.register_profile("dev", max_examples=200, deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this project."""
    parser.addoption("--share", type=int, default=1, metavar="N", help="of long tables of cases, run about one in N")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the share; without xdist the closing line counts it as deselected."""
    share: int = config.getoption("--share") or 1
    if share == 1:
        return
    kept = shared((item.nodeid for item in items), share)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let workers send at once what pytest-rerunfailures asks their controller before each test.

    Its client writes twice and then reads. The kernel holds the second write back until the first is acknowledged:
    each of twenty thousand tests waited for 0.04 seconds.
    """
    client = getattr(getattr(session.config, "failures_db", None), "sock", None)
    if isinstance(client, socket.socket):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_collection_finish() -> None:
    """Leave all modules and collected tests out of the garbage collector's work.

    Tests of event loops collect garbage at their end. With twenty thousand collected tests in memory each took 0.4
    seconds for that, more than for the test itself.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that not all cases ran: xdist's closing line does not count what its workers left out."""
    if (share := config.getoption("--share") or 1) > 1:
        terminalreporter.write_line(f"of long tables about one case in {share} ran")

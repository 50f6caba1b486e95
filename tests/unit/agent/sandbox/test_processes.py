"""Holding the processes of a command still while its files are counted (RUN-5)."""

import subprocess
import time

from toolspeak.agent.sandbox.processes import ProcessTree, Stillness, state, tree


def test_a_guard_is_not_held_still_so_that_it_can_end_the_rest_run5() -> None:
    """If toolspeak is killed while all is stopped, the guard must still receive the signal of that."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60; :"]) as first:
        try:
            while len(tree(first.pid)) == 1:
                time.sleep(0.01)
            (child,) = tree(first.pid)[1:]
            with Stillness({ProcessTree(first.pid, is_guarded=True)}) as still:
                assert still.pids == (child,)
                assert still.held
                assert state(f"/proc/{child}") == "T"
                assert state(f"/proc/{first.pid}") != "T"
            with Stillness({ProcessTree(first.pid)}) as still:
                assert set(still.pids) == {first.pid, child}
                assert state(f"/proc/{first.pid}") == "T"
        finally:
            for pid in reversed(tree(first.pid)):
                subprocess.run(["kill", "-9", str(pid)], check=False)

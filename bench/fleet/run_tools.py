"""The tools of the fleet's runs: each writes a mark to a file when it begins and when it ends.

The file of the marks is in FLEET_MARKS. A call that `kill -9` interrupts has only the first mark.
"""

import asyncio
import os
import time
from pathlib import Path

from testkit.killtest_worker import mark
from toolspeak.agent.tools.functions import tool

ACT_S = 0.2


async def _act(name: str, run: str, n: int) -> str:
    marks, step = Path(os.environ["FLEET_MARKS"]), f"{name} {n}"
    gave = f"{step} of {run} by {os.getpid()} at {time.monotonic_ns()}"
    mark(marks, run, step, "begin")
    await asyncio.sleep(ACT_S)
    mark(marks, run, step, "end", gave)
    return gave


@tool(effect="reads")
async def look(run: str, n: int) -> str:
    """Look at something; it may run twice."""
    return await _act("look", run, n)


@tool
async def put(run: str, n: int) -> str:
    """Change something; it must not run twice."""
    return await _act("put", run, n)

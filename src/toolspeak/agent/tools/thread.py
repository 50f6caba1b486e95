"""A function that may block, beside the event loop."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(function: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Call a function in a thread of its own.

    Python cannot stop a thread: who is cancelled here, or out of time, no longer waits, but the function goes on. It
    is no thread of asyncio's pool, because a few functions that hang would then hold up all others (the look-up of
    hosts too), and the end of the process.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    ended: asyncio.Future[T] = loop.create_future()

    def call() -> None:
        try:
            value = context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 # SystemExit too: a tool does not end the process
            _tell(loop, ended, partial(ended.set_exception, _catchable(error)))
        else:
            _tell(loop, ended, partial(ended.set_result, value))

    threading.Thread(target=call, name=f"tool {getattr(function, '__name__', '')}", daemon=True).start()
    return await ended


def _tell(loop: asyncio.AbstractEventLoop, ended: "asyncio.Future[T]", settle: Callable[[], None]) -> None:
    def settled() -> None:
        if not ended.done():
            settle()

    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(settled)


def _catchable(error: BaseException) -> Exception:
    """Return an error that a future can hold and a caller expects."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")

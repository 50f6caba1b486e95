"""Looks up names and connects sockets to the first address that answers.

A name may have addresses of both families, and one of them may lead nowhere. The next address is tried after a quarter
of a second, or as soon as the one before has failed ("happy eyeballs", RFC 8305).
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import Any, Final, TypeAlias

Address: TypeAlias = tuple[int, int, int, str, Any]
"""An entry of `getaddrinfo`."""
_KEPT: Final = 10.0
"""Seconds for which the addresses of a name are kept."""
_NEXT_AFTER: Final = 0.25
"""Seconds before the next address is tried."""


class NameCache:
    """The addresses of names. Requests that need the same name at the same time share one look-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start empty."""
        self._loop: Final = loop
        self._found: Final[dict[tuple[str, int], tuple[float, asyncio.Task[Sequence[Address]]]]] = {}

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of a name, or an address as it is. Raises `OSError` if there are none."""
        if literal := _literal(host, port):
            return literal
        until, task = self._found.get((host, port), (0.0, None))
        now = self._loop.time()
        if task is None or now >= until or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._loop.create_task(self._look_up(host, port))
            self._found[host, port] = now + _KEPT, task
        try:
            return await asyncio.shield(task)  # a request that is cancelled does not end the look-up of the others
        except asyncio.CancelledError:
            if task.cancelled():
                raise OSError("the look-up was cancelled") from None
            raise

    def close(self) -> None:
        """End the look-ups."""
        for _, task in self._found.values():
            task.cancel()

    async def _look_up(self, host: str, port: int) -> Sequence[Address]:
        return await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)


def _literal(host: str, port: int) -> list[Address]:
    """Return an address that is written as such; an empty list for a name. No thread has to look it up."""
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET  # noqa: PLR2004 # IPv6
    except ValueError:
        return []
    place = (host, port, 0, 0) if family is socket.AF_INET6 else (host, port)
    return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)]


def alternating(addresses: Sequence[Address]) -> list[Address]:
    """Return the addresses with both families in turns, beginning with the family of the first one."""
    first = [each for each in addresses if each[0] == addresses[0][0]]
    other = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for each in chain.from_iterable(zip_longest(first, other)) if each is not None]


async def connected_socket(loop: asyncio.AbstractEventLoop, addresses: Sequence[Address]) -> socket.socket:
    """Connect to the first address that answers. Raises the `OSError` of the first one if none does."""
    if len(addresses) == 1:
        return await _connect(loop, addresses[0])
    left = iter(alternating(addresses))
    tries: list[asyncio.Task[socket.socket]] = []
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while True:
            address = next(left, None)
            if address is not None:
                tries.append(loop.create_task(_connect(loop, address)))
                running.add(tries[-1])
            elif not running:
                raise tries[0].exception() or OSError("it cannot be reached")
            timeout = None if address is None else _NEXT_AFTER
            done, running = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                if each.exception() is None:
                    tries.remove(each)
                    return each.result()
    finally:
        await _give_up(tries)


async def _connect(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, kind, protocol, _, place = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)  # noqa: FBT003 # its only argument
        await loop.sock_connect(made, place)
    except BaseException:
        made.close()
        raise
    return made


async def _give_up(tries: list["asyncio.Task[socket.socket]"]) -> None:
    """End the tries that have not won, and close those that have connected meanwhile."""
    if not tries:
        return
    for each in tries:
        each.cancel()
    await asyncio.wait(tries)
    for each in tries:
        if not each.cancelled() and each.exception() is None:
            each.result().close()

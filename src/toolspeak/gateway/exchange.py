"""One request of a client, and its answer: what the gateway needs of whatever server runs it."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Protocol, TypeAlias, TypeVar

from toolspeak.ir.failure import Failure, FailureKind

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Beat: TypeAlias = Callable[[], Awaitable[float]]
"""Called while the client waits; returns after how many seconds it wants to be called again."""
T = TypeVar("T")
_NO_CONTENT = 204


class Refused(Exception):
    """The gateway itself has to say no."""

    def __init__(self, failure: Failure) -> None:
        """Keep what to say."""
        super().__init__(failure.message)
        self.failure = failure


class Gone(Exception):
    """The client has hung up."""


class Exchange(Protocol):
    """One request and its answer. `path` is as the client wrote it, escapes and all; headers have lower-case names."""

    tenant: str
    """The tenant of the client's key, set once the key is checked; the memory of the body counts for this tenant."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        ...

    @property
    def path(self) -> str:
        """The path without its query."""
        ...

    @property
    def query(self) -> str:
        """What stands behind the question mark."""
        ...

    def headers(self, name: bytes) -> list[str]:
        """Return all values of a header."""
        ...

    async def body(self) -> bytes:
        """Read the body; raises `Refused` over a limit, `Gone` without a client."""
        ...

    async def start(self, status: int, headers: Headers) -> None:
        """Begin the answer."""
        ...

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Send a piece of the answer; waits while the client is slow."""
        ...

    async def attended(self, work: Coroutine[object, object, T], beat: Beat) -> T:
        """Do the work while the client is there; raises `Gone` and cancels the work when it hangs up."""
        ...


def header(exchange: Exchange, name: bytes) -> str:
    """Return the only value of a header, or nothing; one that comes twice is refused."""
    values = exchange.headers(name)
    if len(values) > 1:
        message = f"the header {name.decode()} comes {len(values)} times"
        raise Refused(Failure(FailureKind.INVALID_REQUEST, message, 400))
    return values[0] if values else ""


async def answer(exchange: Exchange, status: int, media_type: bytes, body: bytes, headers: Headers = ()) -> None:
    """Send a whole answer."""
    if status == _NO_CONTENT:  # which has neither type nor length
        await exchange.start(status, headers)
    else:
        length = (b"content-length", b"%d" % len(body))
        await exchange.start(status, ((b"content-type", media_type), length, *headers))
    await exchange.write(b"" if exchange.method == "HEAD" else body, last=True)

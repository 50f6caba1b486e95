"""The models that an upstream says it has: its wire knows where to ask, and in which forms the list may come."""

from toolspeak.errors import BadField
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream


async def list_models(upstream: HttpUpstream) -> list[str]:
    """Ask an upstream; raises `TransportError`."""
    body = await upstream.get(upstream.wire.models_path)
    try:
        return upstream.wire.decode_models(body)
    except BadField as error:
        message = f"the upstream's list of models cannot be read: {error}"
        raise TransportError(Failure(FailureKind.OTHER, message, 502)) from None

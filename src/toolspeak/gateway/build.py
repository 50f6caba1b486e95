"""Builds a gateway from its configuration."""

from toolspeak import wires
from toolspeak.config.assemble import assemble, confirming_depths, depths, verdicts
from toolspeak.config.shape import Config
from toolspeak.gateway.access import HostPolicy, Keyring
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.app import DisabledRuns, Gateway, RunsApi
from toolspeak.gateway.asgi import Asgi
from toolspeak.gateway.overload import Overload
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import Routes
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.learned import SHARED
from toolspeak.runtime.offload import Offload
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.transport import HttpTransport, Transport


def build(config: Config, clock: Clock = CLOCK, transport: Transport | None = None) -> Asgi:
    """Return the ASGI application; nothing is connected yet. It owns `transport` and closes it at shutdown."""
    transport = transport or HttpTransport()
    # SHARED, whatever keys there are: clients of a gateway do not trust each other, so none may change shared verdicts.
    directory = assemble(config, transport, SHARED, clock)
    reader = RequestReader(config.limits.request, Offload())
    gateway = Gateway(
        config,
        Routes(wires.apis()),
        directory,
        transport,
        Keyring(config.keys),
        HostPolicy(config),
        Admission(config.limits, clock),
        Overload(config.limits, clock),
        reader,
        Prober(depths(config), verdicts(config, clock), clock, confirming_depths(config), config.server.probe_requests),
        _runs(config, directory, reader, clock),
        clock,
    )
    return Asgi(gateway, config.limits)


def _runs(config: Config, directory: Directory, reader: RequestReader, clock: Clock) -> RunsApi:
    if not config.offer.enabled:
        return DisabledRuns()
    from toolspeak.gateway.runs import RunsEndpoints  # noqa: PLC0415 # runs take long to import

    return RunsEndpoints(config, directory, reader, clock)

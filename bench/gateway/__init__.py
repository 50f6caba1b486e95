"""The parts of `just speed-gateway`: an upstream, a client, a bare gateway, the peers, the metering and the targets."""

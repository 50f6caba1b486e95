"""Proofs and measurements: each module is a command that closes with one line of JSON."""

"""Proofs and measurements: each module is a command whose last output is one line of JSON."""

"""Confines the commands of a run: one writable folder, no network, resource limits, no surviving process (RUN-5).

This package starts, watches and ends confined programs. Permission to call them is decided in `agent/tools`.
Read first: `sandbox.py` (the interface), then `bwrap.py` and `launch.py`. `selection.py` chooses a backend.
"""

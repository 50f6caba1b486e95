"""Connects the engine to models: runs its programs against real servers, clocks and connections.

Belongs here: I/O towards upstreams, probing, the clock. Does not: decisions (`engine`), vendor formats (`wires`), the
execution of tools (`agent`). Read first: `drive.py`.
"""

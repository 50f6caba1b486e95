"""The connection to models: drives the engine's programs against real servers, clocks and connections.

Belongs here: I/O towards upstreams, probing, the clock. Does not: decisions, vendor bodies, tools that run (`agent`).
Read first: `drive.py`.
"""

"""The only room that waits: drivers of the engine's programs, and what they need.

Belongs here: I/O, clocks, connections. Does not: decisions, vendor bodies.
Read first: `drive.py`.
"""

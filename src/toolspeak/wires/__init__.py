"""Vendor bodies to ir and back.

Belongs here: one file per wire, and readers of what real servers really send.
Does not: text forms of calls, decisions, I/O.
Read first: `_deltas.py`.
"""

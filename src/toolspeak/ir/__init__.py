"""The types of a conversation, independent of any vendor.

Belongs here: frozen values (messages, tools, requests, events, turns) and folding events to a turn.
Does not: JSON bodies of a vendor, parsing, anything that does I/O or keeps state.
Read first: `event.py`, then `turn.py`.
"""

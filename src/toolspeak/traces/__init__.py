"""Traces: what happened in a turn, kept for people.

Belongs here: the document of a trace, its stores, its explanation, replays. Does not: recording while a turn runs
(`runtime/recorder.py`), and how a trace is shown (`cli/trace/`, the gateway).
Read first: `trace.py`.
"""

"""The tools of one request, made ready for the calls that will come.

Belongs here: finding the tool that a name means, compiled schemas, fitting arguments to them.
Does not: how a call is written (dialects) or sent (wires), what a tool does.
Read first: `toolset.py`, then `names.py`.
"""

"""Other servers' tools, by the Model Context Protocol: over stdin and stdout of a command, or over HTTP (RUN-4).

Belongs here: how a server is reached, what is believed of what it says, how its results become ours. Does not: which
servers there are; that is the configuration's.
Read first: `actions.py`, then `line.py` (a server that may die) and `definition.py` (what is believed).

Nothing that a server says is trusted: names, descriptions, schemas and results are bounded and cleaned, its schemas
never run on a regular expression that backtracks, and a tool is offered only if a person has seen its definition.
Only `actions.py` and what it imports load the SDK.
"""

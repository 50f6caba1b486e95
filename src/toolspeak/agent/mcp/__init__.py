"""Other servers' tools, by the Model Context Protocol: over stdin and stdout of a command, or over HTTP (RUN-4).

Belongs here: how a server is reached, what is believed of what it says, how its results become ours. Does not: which
servers there are; that is the configuration's.
Read first: `connection.py` (a server that may die), then `definition.py` (what is believed).

Nothing that a server says is trusted: names, descriptions, schemas and results are bounded and cleaned, its schemas
never run on a regular expression that backtracks, and a tool is offered only if a person has seen its definition.
Only `connection.py`, `session.py`, `result.py` and `server_transport.py` load the SDK.
"""

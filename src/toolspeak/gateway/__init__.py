"""The server: five protocols in, on one port.

Belongs here: clients' HTTP, access, limits, overload, turns, runs and the other endpoints. Does not: vendor bodies,
decisions, upstreams. Read first: `app.py`, then `turns.py`. Only `asgi.py`, `connections.py` and `server.py` depend on
the server that runs it.
"""

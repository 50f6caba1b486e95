"""The HTTP server: serves clients of five protocols on one port.

Belongs here: clients' HTTP, access, limits, overload, turns, runs and the other endpoints. Does not: vendor formats
(`wires`), decisions (`engine`), upstreams (`runtime`). Read first: `app.py`, then `turns.py`. Only `asgi.py`,
`connections.py` and `server.py` depend on the server that runs the gateway.
"""

"""The server: five protocols in, on one port.

Belongs here: HTTP of clients, who may ask, what is answered beside turns.
Does not: vendor bodies, decisions, upstreams.
Read first: `app.py`, then `turns.py`. Nothing but `asgi.py` and `server.py` knows by which server it is run.
"""

"""What models and servers can do: data, merged, no I/O.

Belongs here: capabilities of providers, servers and model families. Does not: measuring them, deciding by them.
Read first: `model.py`, then `merge.py`.
"""

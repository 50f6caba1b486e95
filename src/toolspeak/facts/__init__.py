"""Facts about models and servers, as data that is merged from several sources. No I/O.

Belongs here: capabilities of providers, servers and model families. Does not: measuring them, deciding by them.
Read first: `model.py`, then `strategy.py`.
"""

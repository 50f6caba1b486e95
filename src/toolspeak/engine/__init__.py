"""The decisions of turns, probes and runs, as generators that yield effects. No I/O.

Belongs here: what to do with a request, how to teach tools, what to release, when to ask again.
Does not: vendor bodies, connections, clocks.
Read first: `effects.py`, then `turn.py`.
"""

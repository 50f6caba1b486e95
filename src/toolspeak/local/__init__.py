"""Model servers on this machine: one that already runs is detected, one of our own is started and watched (RUN-6).

Belongs here: finding, starting and keeping a server. Does not: requests to its model; to all other code it is an
upstream like any other.
Read first: `supervisor.py` (our own server), `detection.py` (servers of others).
"""

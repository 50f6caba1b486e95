"""A model server of our own: found, started, watched, and never left behind (RUN-6).

Belongs here: how it is run and kept running. Does not: what is said to it; to everybody else it is an upstream.
Read first: `keeper.py`.
"""

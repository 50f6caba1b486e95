"""Model servers on this machine: detects running ones, and starts and supervises one of our own (RUN-6).

This package finds, starts and watches a server. To all other code the server is an upstream like any other.
Read first: `supervisor.py` (our own server), `detection.py` (servers of others).
"""

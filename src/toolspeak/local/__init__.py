"""Model servers on this machine: detects running ones, and starts and supervises our own (RUN-6, UP-1 to UP-6).

This package finds or fetches models, and starts and watches their servers. To all other code a server is an upstream
like any other. Read first: `supervisor.py` (one server of ours), `switch.py` and `pool.py` (several), `models.py`
(where a model comes from), `detection.py` (servers of others).
"""

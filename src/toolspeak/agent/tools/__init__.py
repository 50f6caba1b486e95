"""Tools that run here: Python functions, files, a shell, other servers' (RUN-4).

Belongs here: what a tool does, and what it may do. Does not: when it is called; that is a run's.
Read first: `action.py` (what a tool that can run is), then `toolbox.py`.
"""

"""What confines the commands of a run: one writable folder, no network, limits, nothing left behind (RUN-5).

Belongs here: how a command is shut in, watched and ended. Does not: who may call it; that is `agent/tools`.
Read first: `sandbox.py` (what is asked of a sandbox), then `bwrap.py` and `launch.py`. `selection.py` chooses one.
"""

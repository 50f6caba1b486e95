"""Runs: tasks worked to their end, round by round, here or by workers that may die (RUN-1 to RUN-3).

Belongs here: how a run is described, driven, kept, watched, cancelled and taken up again. Does not: what a round is
(`engine/agent.py`), what tools do (`agent/tools`), how runs are shown.
Read first: `runs.py` (what can be asked of runs), then `work.py` and `steps.py`.
"""

"""Runs: execute tasks round by round until they end, in this process or in workers that may die (RUN-1 to RUN-3).

This package describes, drives, stores, watches, cancels and resumes runs. Rounds are defined in `engine/agent.py`,
tools in `agent/tools`.
Read first: `runs.py` (the interface), then `steps.py`.
"""

"""Runs that survive `kill -9`: each turn and each call is a step, kept in SQLite or PostgreSQL (RUN-3).

Belongs here: how steps are kept, which worker has which run, what becomes of a dead worker's. Does not: what is a step
(`agent/runs/steps.py`), what a step does (`agent/runs/work.py`), what a run is (`engine/agent.py`).
Read first: `runs.py` (what can be asked), `step_store.py` (what is stored), then `worker.py` and `lease.py`.

DBOS stores the steps. It takes two seconds to load, so this package is imported only for durable runs. All use of
DBOS beyond its public interface is in `dbos_internals.py`.
"""

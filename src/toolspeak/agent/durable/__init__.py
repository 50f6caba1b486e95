"""Durable runs: they survive `kill -9`. Each turn and each call is a step, stored in SQLite or PostgreSQL (RUN-3).

This package stores steps, assigns runs to workers, and recovers the runs of dead workers. The steps of a run are
defined in `agent/runs/steps.py`, and the run itself in `engine/agent.py`.
Read first: `runs.py` (the interface), `step_store.py` (what is stored), then `worker.py` and `lease.py`.

DBOS stores the steps. It takes two seconds to import, so this package is imported only for durable runs. All use of
DBOS beyond its public interface is in `dbos_internals.py`.
"""

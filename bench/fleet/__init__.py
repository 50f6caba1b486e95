"""`just fleet`: a whole fleet on one machine, under load, while a seeded schedule of faults breaks parts of it.

Belongs here: the processes of the fleet, the faults, the load, the checks of what clients got, the report.
Does not: tests of a single fault in a single gateway (`tests/gateway`), or of workers alone (`bench/killtest.py`).
Read first: `schedule.py`, then `checks.py`, then `run.py`.
"""

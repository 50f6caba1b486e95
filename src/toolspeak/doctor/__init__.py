"""Finds the form of tool calling that suits a model: a small suite of tasks, a tournament of forms, a profile (CAP-5).

Belongs here: tasks, how answers are judged, which form wins. Does not: how it looks in a terminal.
Read first: `task.py` (what a task is), then `tournament.py` (how a winner is found).

`task`, `suite`, `call_forms`, `tournament` and `report` do no I/O; `server_facts` asks the server, `examination` the
model.
"""

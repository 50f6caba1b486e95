"""Finds the form of tool calling that suits a model: a small suite of tasks, a tournament of forms, a profile (CAP-5).

Belongs here: tasks, the judgement of answers, the choice of the winner. Does not: output for a terminal (`cli`).
Read first: `task.py` (what a task is), then `tournament.py` (how a winner is found).

`task`, `suite`, `call_forms`, `tournament` and `report` do no I/O; `server_facts` asks the server, `examination` the
model.
"""

"""Which form of tool calling a model does best with: a small suite, a trial, a profile (CAP-5).

Belongs here: what is asked, how answers are marked, which form goes on. Does not: how it looks in a terminal.
Read first: `task.py` (what a task is), then `trial.py` (how a winner is found).

`task`, `suite`, `forms`, `trial` and `verdict` do no I/O; `look` asks the server, `examine` the model.
"""

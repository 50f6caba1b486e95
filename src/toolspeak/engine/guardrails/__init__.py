"""Guardrails: heuristics against the habits of small models. All are off unless a setting or a profile asks for them.

Belongs here: guesses whether a call is meant, complete, or the right one, based on the words of the conversation.
Does not: checks that hold for every model (`toolset/check.py`), and anything that a turn must know by name.
Read first: `guardrail.py`, the protocol that a turn speaks; then `catalogue.py`.

They were tuned on the first 18 tasks of each benchmark set with one model of 0.5 billion parameters. On the nine tasks
after them, all five together still add about 25 points (docs/accuracy.md). No single guardrail has been measured on
tasks that it was not tuned on, which is why all are off by default.
"""

"""Guardrails: heuristics against the habits of small models. All are off unless a setting or a profile asks for them.

Belongs here: guesses about whether a call is meant, complete, or the right one, made by words of the conversation.
Does not: checks that hold for every model (`toolset/check.py`), and anything that a turn must know by name.
Read first: `guardrail.py`, the protocol that a turn speaks; then `catalogue.py`.

They were made while looking at the first 18 tasks of each benchmark set on one model of 0.5 billion parameters; on the
nine tasks after them all five together still add about 25 points (docs/accuracy.md). No single one has been measured on
tasks that it was not tuned on.
"""

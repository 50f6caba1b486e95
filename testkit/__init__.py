"""What the tests and the benches share: golden cases, generators, grammars of the wires, scripted servers and models.

`tests` and `bench` import it; it imports neither of them, and they do not import each other (`tools/repo_rules.py`
checks it). It is not part of the wheel.
"""

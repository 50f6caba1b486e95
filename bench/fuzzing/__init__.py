"""A coverage-guided fuzzer over the parts that read bytes from strangers: HTTP heads, wire decoders, dialect readers.

Read first: `target.py` (what a target is), then one target, then `run.py` (the command).
`worker.py` is the only module that imports atheris; it runs in `.venv-fuzz`, from requirements/fuzz.txt.
"""

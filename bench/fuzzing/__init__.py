"""A coverage-guided search for failures in the targets of `testkit/fuzzing`. Read first: `run.py` (the command).

`worker.py` is the only module that imports atheris; it runs in `.venv-fuzz`, from requirements/fuzz.txt.
"""

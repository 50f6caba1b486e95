"""Do the tests notice a mistake? `python -m tools.mutants` makes mistakes and counts those that the tests find."""

"""`just unreached`: settings, options and public names that are documented and that no code path of the product uses.

Belongs here: reading the source for uses, without running it. Read first: `__main__.py`, the list of what is checked;
then `reads.py`, which finds where a field is read.
"""

"""Text and byte processing that is independent of language models.

Belongs here: scanning for markers over chunk borders, the end of a JSON value, repair, coercion, SSE and NDJSON frames.
Does not: anything that knows a dialect, a vendor or a tool.
Read first: `scan.py`, then `jsonspan.py`.
"""

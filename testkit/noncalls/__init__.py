"""Texts that only look like calls, and a reading of them by every reader (P5)."""

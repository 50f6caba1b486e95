"""The shape of the source: `python -m tools.house` prints figures before and after, and the broken rules."""

"""Terminal recordings for the docs: commands run in a terminal of ours, and become animated pictures."""

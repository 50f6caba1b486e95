"""Terminal recordings for the docs: commands run in an emulated terminal, and become animated pictures."""

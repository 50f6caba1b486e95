"""`python -m toolspeak.cli`."""

from toolspeak.cli import main

main()

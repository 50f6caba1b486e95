"""`python -m toolspeak`."""

from toolspeak.cli import main

main()

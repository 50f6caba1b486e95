"""`python -m toolspeak`."""

from toolspeak.cli import main

if __name__ == "__main__":
    main()

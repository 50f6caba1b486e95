"""Builds the documentation site from docs/ and the pages at the top of the repository: `just site`."""

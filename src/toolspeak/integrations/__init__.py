"""Lets other programs read calls with toolspeak's readers, inside of their own process.

Belongs here: one module for each host (vLLM, SGLang), a thin adapter between its objects and `output_reader.py`. Does
not: parsing. A host's package is imported only in the module of that host, which the host itself loads by an entry
point; toolspeak depends on none of them.
"""

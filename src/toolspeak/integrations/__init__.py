"""toolspeak inside of other programs, in their own process.

Belongs here: one module for each host, a thin adapter between its objects and ours: vLLM and SGLang read calls by
`output_reader.py`, LiteLLM calls models by `toolspeak.transport`. Does not: parsing, or decisions. A host's package is
imported only in the module of that host, which the host loads by an entry point or by its name; toolspeak depends on
none of them.
"""

"""The parts that read untrusted bytes, as targets of a fuzzer: HTTP heads, wire decoders, dialect readers.

Read first: `target.py` (what a target is), then one target. The tests replay the kept corpus; `bench/fuzzing` searches.
"""

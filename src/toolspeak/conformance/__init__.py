"""Judges any OpenAI-compatible server or gateway over HTTP: `toolspeak conformance URL`.

`cases.py` has the texts that models wrote, with the calls that must come of each; `upstream.py` is the scripted model
server behind a gateway, which answers with these texts; `protocol.py` judges the bytes that a client gets; `trial.py`
sends the cases through a gateway, and `live.py` asks a real model. `report.py` counts and draws the badge.

Nothing here uses the readers, wires or engine of toolspeak: a judge that shares code with the accused finds nothing.
"""

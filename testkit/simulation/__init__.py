"""Simulates whole turns: a seed makes the model, the network and the client, and `promises.py` checks the result."""

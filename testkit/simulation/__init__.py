"""Whole turns against a simulated model, network and client, each made from one number; `promises.py` must hold."""

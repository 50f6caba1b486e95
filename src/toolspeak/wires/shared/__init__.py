"""Code that several wires share: the interface, JSON bodies, histories, calls, tools, errors.

Belongs here: whatever two wires would otherwise write twice. Does not: one vendor's format, which is in the wire's own
package. Read first: `interface.py`.
"""

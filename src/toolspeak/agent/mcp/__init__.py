"""Tools of MCP servers: over stdin and stdout of a command, or over HTTP (RUN-4).

This package connects to servers, decides which of their claims to believe, and converts their results. The servers
themselves are listed in the configuration.
Read first: `connection.py` (a server that may die), then `definition.py` (which claims are believed).

No server is trusted. Names, descriptions, schemas and results are bounded and cleaned. A server's schema is never
matched with a regular expression engine that backtracks. A tool is offered only if a person has approved its
definition. Only `connection.py`, `session.py` and `server_transport.py` import the SDK.
"""

"""Tools that toolspeak runs itself: Python functions, files, a shell, tools of MCP servers (RUN-4).

This package defines tools and their permissions. Runs decide when a tool is called.
Read first: `action.py` (the definition of a runnable tool), then `toolbox.py`.
"""

"""The agent runner: executes tasks until they end, with everything that a run may use (RUN-1 to RUN-5).

`runs/`     the description, execution and events of a run, and runs in memory
`durable/`  runs that survive the death of a process, in SQLite or PostgreSQL
`tools/`    Python functions, files and a shell as tools
`mcp/`      tools of MCP servers
`sandbox/`  the confinement of commands and MCP servers

This package has the code that exists only because toolspeak runs tools itself. A single turn is in `engine`, the
connection to a model in `runtime`.
Read first: `runs/steps.py`, then `tools/action.py`.
"""

"""The agent runner: tasks worked to their end, and all that a run may use (RUN-1 to RUN-5).

`runs/`     what a run is, how it is driven, watched and kept in memory
`durable/`  runs that survive the death of a process, in SQLite or PostgreSQL
`tools/`    Python functions, files and a shell as tools
`mcp/`      tools of MCP servers
`sandbox/`  the confinement of commands and MCP servers

Belongs here: everything that exists only because toolspeak runs tools itself. Does not: a single turn (`engine`), the
connection to a model (`runtime`).
Read first: `runs/steps.py`, then `tools/action.py`.
"""

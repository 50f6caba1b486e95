r"""`toolspeak mcp`: other servers' tools for our runs, and our runs as tools for others.

$ toolspeak mcp tools files
files  npx -y @modelcontextprotocol/server-filesystem /srv/papers
  approved  files__read_text_file  reads  Read the complete contents of a file …
  new       files__write_file      once   Create a new file …
"""

from pathlib import Path

import click

from toolspeak.cli.options import configured, upstream_options
from toolspeak.cli.terminal import Paint, color_option

_APPROVE = "Allow runs to use these tools as they are now; on a terminal you are asked once more."
_ROOT = "Runs may work in folders below this one.  [default: the current folder]"
_APPROVAL = "Which calls may run: read-only or auto (in the sandbox), or off (all).  [default: auto]"


@click.group()
def mcp() -> None:
    r"""Use the tools of MCP servers, or offer runs as such tools.

    Servers stand in the configuration as [mcp.NAME], with a command or a url. A tool is offered to a model only if
    you have approved its definition, and again when that has changed. Needs `pip install 'toolspeak[mcp]'`.

    \b
    Examples:
      toolspeak mcp tools
      toolspeak mcp tools files --approve
      toolspeak mcp serve --root ~/projects
    """


@mcp.command()
@click.argument("name", required=False)
@click.option("--approve", is_flag=True, help=_APPROVE)
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--json", "as_json", is_flag=True, help="Say it all in one JSON object.")
@color_option
def tools(*, name: str | None, approve: bool, file: Path | None, as_json: bool) -> None:
    r"""List the tools of one server or of all, and how they stand.

    Each tool is approved, new, changed since it was approved, or left out because of what it is. The status is 1 if a
    server cannot be used.

    \b
    Examples:
      toolspeak mcp tools
      toolspeak mcp tools files --approve
    """
    # The SDK is loaded only here: `--help` must not pay for it.
    from toolspeak.cli._mcp_tools import Wishes, show  # noqa: PLC0415
    from toolspeak.config import current, load  # noqa: PLC0415

    if approve and not name:
        raise click.UsageError("--approve needs the NAME of a server")
    wishes = Wishes(name or "", approve=approve, as_json=as_json)
    click.get_current_context().exit(show(load(file, current()), wishes, Paint.here()))


@mcp.command()
@upstream_options
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--root", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER", help=_ROOT)
@click.option("--approval", type=click.Choice(["read-only", "auto", "off"]), default="auto", help=_APPROVAL)
@click.option("--tools", "names", metavar="NAMES", help="The tools of runs, with commas between them.")
def serve(*, file: Path | None, root: Path | None, approval: str, names: str | None, **said: str | bool | None) -> None:
    r"""Offer runs as MCP tools, on standard input and output.

    The tools are run_agent, which works on a task to its end and says how far it is, run_status and run_cancel. Nobody
    can be asked here, so a call that would need a person's word is refused.

    \b
    Example:
      claude mcp add toolspeak -- toolspeak mcp serve --upstream http://127.0.0.1:8080/v1
    """
    from toolspeak.config.mcp import sdk_needed  # noqa: PLC0415

    sdk_needed()
    from toolspeak.cli._mcp_serving import TOOLS, House, run  # noqa: PLC0415
    from toolspeak.runtime.tools.approval import Approval  # noqa: PLC0415

    wanted = tuple(each.strip() for each in names.split(",")) if names else TOOLS
    run(configured(file, said), House((root or Path()).resolve(), Approval(approval), wanted))


for _command in mcp.commands.values():
    _command.help = (_command.help or "").replace("\\b\n", "\b\n")  # click's mark, out of a raw docstring

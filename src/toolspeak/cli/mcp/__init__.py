r"""`toolspeak mcp`: use the tools of MCP servers in runs, and offer runs as MCP tools.

$ toolspeak mcp tools files
files  npx -y @modelcontextprotocol/server-filesystem /srv/papers
  approved  files__read_text_file  reads  Read the complete contents of a file …
  new       files__write_file      once   Create a new file …
"""

from pathlib import Path

import click

from toolspeak.cli.options import config_option, json_option, load_config, upstream_options
from toolspeak.cli.terminal import Paint, color_option

_APPROVE = "Allow runs to use these tools as they are now; on a terminal, you are asked to confirm."
_ROOT = "Folder below which runs can work.  [default: the current folder]"
_APPROVAL = "Which calls can run: read-only or auto (in the sandbox), or off (all).  [default: auto]"


@click.group()
def mcp() -> None:
    r"""Use the tools of MCP servers, or offer runs as MCP tools.

    Servers are configured as [mcp.NAME], with a command or a url. A model gets a tool only after you have approved its
    definition; a definition that changes needs your approval again. Needs `pip install 'toolspeak[mcp]'`.

    \b
    Examples:
      toolspeak mcp tools
      toolspeak mcp tools files --approve
      toolspeak mcp serve --root ~/projects
    """


@mcp.command()
@click.argument("name", required=False)
@click.option("--approve", is_flag=True, help=_APPROVE)
@config_option
@json_option
@color_option
def tools(*, name: str | None, approve: bool, file: Path | None, as_json: bool) -> None:
    r"""List the tools of one MCP server or of all, with their approval.

    Each tool is approved, new, changed since you approved it, or left out because its definition is invalid. The exit
    status is 1 if a server does not work.

    \b
    Examples:
      toolspeak mcp tools
      toolspeak mcp tools files --approve
    """
    # The SDK is loaded only here, so that `--help` stays fast.
    from toolspeak.cli.mcp.tool_list import ToolListOptions, show  # noqa: PLC0415
    from toolspeak.config import current, load  # noqa: PLC0415

    if approve and not name:
        raise click.UsageError("--approve needs the NAME of a server. `toolspeak mcp tools` lists them.")
    wanted = ToolListOptions(name or "", approve=approve, as_json=as_json)
    click.get_current_context().exit(show(load(file, current()), wanted, Paint.here()))


@mcp.command()
@upstream_options
@config_option
@click.option("--root", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER", help=_ROOT)
@click.option("--approval", type=click.Choice(["read-only", "auto", "off"]), default="auto", help=_APPROVAL)
@click.option("--tools", "names", metavar="NAMES", help="Tools of the runs, separated by commas.")
def serve(
    *, file: Path | None, root: Path | None, approval: str, names: str | None, **options: str | bool | None
) -> None:
    r"""Offer runs as MCP tools, on standard input and output.

    The tools are run_agent, which works on a task until it is done and reports progress, run_status and run_cancel.
    There is no user to ask over MCP, so calls that need approval are denied.

    \b
    Example:
      claude mcp add toolspeak -- toolspeak mcp serve --upstream http://127.0.0.1:8080/v1
    """
    from toolspeak.agent.mcp.sdk import require_sdk  # noqa: PLC0415

    require_sdk()
    from toolspeak.cli.mcp.server import TOOLS, RunPolicy, serve_runs  # noqa: PLC0415
    from toolspeak.config.shape import Approval  # noqa: PLC0415

    wanted = tuple(each.strip() for each in names.split(",")) if names else TOOLS
    serve_runs(load_config(file, options), RunPolicy((root or Path()).resolve(), Approval(approval), wanted))

r"""`toolspeak launch`: start an agent that uses toolspeak, without changing its configuration.

$ toolspeak launch claude
Claude Code uses qwen2.5-coder-1.5b through http://127.0.0.1:4141

`agents.py` has the agents. The gateway is imported inside the functions that need it, so that `--help` stays fast.
"""

# click is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

from pathlib import Path
from typing import Any, Final

import click

from toolspeak.cli.options import config_option, place_options, tool_options

_ARGUMENTS: Final = "toolspeak.launch.arguments"


class _AgentCommand(click.Command):
    """Keeps the words after `--` apart: click would take the first of them for MODEL."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before `--`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_ARGUMENTS] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


def _complete_agent(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    del context, parameter
    from toolspeak.cli.launch.agents import AGENTS  # noqa: PLC0415 # `--help` must not load them

    return [name for name in AGENTS if name.startswith(typed)]


@click.command(cls=_AgentCommand)
@click.argument("name", required=False, metavar="[AGENT]", shell_complete=_complete_agent)
@click.argument("model", required=False, metavar="[MODEL] [-- ARGUMENT...]")
@click.option("--gateway", metavar="URL", help="Use the gateway that runs at this address.")
@click.option("--key", metavar="KEY", help="Key of that gateway; it is safer in the variable TOOLSPEAK_KEY.")
@click.option("--api", metavar="NAME", help="API that the agent uses, if it can use several, such as anthropic.")
@click.option("--print", "prints", is_flag=True, help="Print the environment, files and command, and start nothing.")
@place_options
@tool_options
@config_option
def launch(  # noqa: PLR0913 - one for each option
    *,
    name: str | None,
    model: str | None,
    gateway: str | None,
    api: str | None,
    prints: bool,
    file: Path | None,
    **options: Any,  # noqa: ANN401 # as `Options` declares them
) -> None:
    r"""Start an agent with a model of toolspeak, or list the agents.

    The agent gets its settings through environment variables, arguments and temporary files; its own configuration does
    not change. It uses the gateway that runs on this machine (`toolspeak serve`, `toolspeak up`), or a new gateway that
    starts and stops with the agent. MODEL is one of `toolspeak models`, the first by default. Arguments after -- are
    passed to the agent. The exit status is that of the agent.

    \b
    Examples:
      toolspeak launch
      toolspeak launch claude
      toolspeak launch codex qwen2.5-coder:7b -- exec "Explain this folder"
      toolspeak launch opencode --preset groq --print
    """
    from toolspeak.cli.launch.gateway import GatewayChoice  # noqa: PLC0415
    from toolspeak.cli.launch.launcher import AgentLaunch  # noqa: PLC0415
    from toolspeak.cli.launch.listing import find_agent, list_agents  # noqa: PLC0415
    from toolspeak.config import Options, current  # noqa: PLC0415

    environ, ctx = current(), click.get_current_context()
    if name is None:
        list_agents(environ)
        return
    choice = GatewayChoice(gateway, file, Options(**options))
    prepared = AgentLaunch(find_agent(name), api, model, ctx.meta[_ARGUMENTS], choice)
    if prints:
        prepared.print(environ)
    else:
        ctx.exit(prepared.run(environ))

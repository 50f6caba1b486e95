"""The list of agents, and the search for one."""

import shutil
from collections.abc import Mapping

import click

from toolspeak.cli.launch.agents import AGENTS, Agent
from toolspeak.cli.terminal import visible
from toolspeak.config.problems import did_you_mean


def list_agents(environ: Mapping[str, str]) -> None:
    """Print every agent: where its program is, or how to install it. Installed ones come first."""
    found = [(agent, shutil.which(agent.program, path=environ.get("PATH", ""))) for agent in AGENTS.values()]
    names, titles = max(len(agent.name) for agent, _ in found) + 2, max(len(agent.title) for agent, _ in found) + 2
    for agent, path in sorted(found, key=lambda pair: pair[1] is None):
        where = visible(path) if path else f"not installed: {agent.install}"
        click.echo(f"{agent.name:{names}}{agent.title:{titles}}{where}")
    if any(path for _, path in found):
        click.echo("\nStart one with `toolspeak launch AGENT`.", err=True)
    else:
        click.echo("\nNone is installed. Install one, then type `toolspeak launch AGENT`.", err=True)


def find_agent(name: str) -> Agent:
    """Return an agent by its name, its program or its title. Raises `click.UsageError`."""
    for agent in AGENTS.values():
        if name.casefold() in {agent.name, agent.program, agent.title.casefold()}:
            return agent
    raise click.UsageError(
        f"There is no agent {name!r}{did_you_mean(name, AGENTS) or '.'} Type `toolspeak launch` to list them."
    )


def program_of(agent: Agent, environ: Mapping[str, str]) -> str:
    """Return the path of the agent's program. Raises `click.ClickException` if it is not installed."""
    path = shutil.which(agent.program, path=environ.get("PATH", ""))
    if path is None:
        raise click.ClickException(
            f"{agent.title} is not installed: there is no program {agent.program!r} on the PATH. "
            f"Install it with `{agent.install}`, then launch it again."
        )
    return path

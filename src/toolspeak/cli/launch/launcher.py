"""Starts one agent: gateway, model, recipe, process."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from toolspeak.cli.launch.agents import NO_KEY, Agent, AgentTarget, Recipe
from toolspeak.cli.launch.gateway import (
    GatewayChoice,
    RunningGateway,
    choose_model,
    context_of,
    find_gateway,
    own_gateway,
)
from toolspeak.cli.launch.listing import program_of
from toolspeak.cli.launch.process import agent_environment, run_agent, write_files
from toolspeak.cli.launch.shell_lines import shell_lines
from toolspeak.cli.terminal import visible
from toolspeak.config.shape import HOST, PORT

_FOLDER: Final = "toolspeak-launch-"
_HIDDEN: Final = "***"


@dataclass(frozen=True, slots=True)
class AgentLaunch:
    """What the command line says: an agent, the API that it uses, a model, the agent's own arguments, a gateway."""

    agent: Agent
    api: str | None
    model: str | None
    arguments: tuple[str, ...]
    choice: GatewayChoice

    def run(self, environ: Mapping[str, str]) -> int:
        """Run the agent to its end and return its exit status. Everything that was started or written is gone then.

        Raises `BadConfig`, `click.UsageError` and `click.ClickException` before the agent is started.
        """
        program = program_of(self.agent, environ)
        self._check_api()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_FOLDER)))
            gateway = find_gateway(self.choice, environ) or stack.enter_context(own_gateway(self.choice, environ))
            model = choose_model(gateway, self.model, self.agent.name)
            recipe = self._recipe(AgentTarget(gateway.url, model, folder, gateway.key, context_of(gateway, model)))
            write_files(recipe)
            click.echo(_welcome(self.agent, model, gateway), err=True)
            env = agent_environment(self.agent, recipe, environ)
            return run_agent((program, *recipe.arguments, *self._further), env)

    def print(self, environ: Mapping[str, str]) -> None:
        """Print the shell lines that do the same, without starting anything. Keys are hidden."""
        self._check_api()
        gateway = find_gateway(self.choice, environ)
        if gateway is None:
            click.echo("# No gateway runs yet; start it first: toolspeak serve")
            gateway = RunningGateway(f"http://{HOST}:{PORT}")
            model = self.model or "MODEL"
        else:
            model = choose_model(gateway, self.model, self.agent.name)
        key = gateway.key if gateway.key == NO_KEY else _HIDDEN
        recipe = self._recipe(AgentTarget(gateway.url, model, Path(tempfile.gettempdir()) / _FOLDER.rstrip("-"), key))
        for name in self.agent.unset:
            if name in environ:
                click.echo(f"unset {name}")
        for line in shell_lines(self.agent.program, recipe, self._further):
            click.echo(visible(line))

    @property
    def _further(self) -> tuple[str, ...]:
        return self.arguments or self.agent.interactive

    def _check_api(self) -> None:
        if self.api is not None and self.api not in self.agent.recipes:
            raise click.UsageError(
                f"{self.agent.title} cannot use the API {self.api!r}. Pass --api {' or '.join(self.agent.recipes)}, "
                "or leave it out."
            )

    def _recipe(self, target: AgentTarget) -> Recipe:
        return self.agent.recipes[self.api or next(iter(self.agent.recipes))](target)


def _welcome(agent: Agent, model: str, gateway: RunningGateway) -> str:
    how = "started with it" if gateway.is_ours else "already running"
    return f"{agent.title} uses {visible(model)} through {gateway.url} ({how})"

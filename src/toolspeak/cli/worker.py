r"""`toolspeak worker`: works on durable runs.

$ toolspeak worker --upstream http://127.0.0.1:8080/v1
toolspeak works on runs of postgresql://runs@db/toolspeak
"""

from pathlib import Path

import click

from toolspeak.cli.options import configured, upstream_options


@click.command()
@upstream_options
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--grace", type=float, default=30.0, metavar="S", help="Seconds to end in order.  [default: 30]")
@click.option("--quiet", is_flag=True, help="Log only what goes wrong.")
def worker(*, file: Path | None, grace: float, quiet: bool, **said: str | bool | None) -> None:
    r"""Work on durable runs, and take over those of workers that died.

    As many as you like may work on one database. On SIGTERM or Ctrl-C it begins no further step, lets those that run
    end, and puts its runs back into the queue. The status is 3 if its lease ran out and others have its runs.

    \b
    Examples:
      toolspeak worker
      toolspeak worker --config /etc/toolspeak.toml
      TOOLSPEAK_RUNS_DATABASE=postgresql://runs@db/toolspeak toolspeak worker --preset groq
    """
    # The engine is loaded only here: `--help` must not pay for it.
    from toolspeak.cli._working import run  # noqa: PLC0415

    click.get_current_context().exit(run(configured(file, said), grace, quiet=quiet))

"""`toolspeak dialects`: the text forms of tool calls, and their export as a `response_template`."""

import json

import click


@click.group()
def dialects() -> None:
    r"""List the text forms of tool calls, or export one.

    \b
    Examples:
      toolspeak dialects list
      toolspeak dialects export hermes --start-anchor '<|im_start|>assistant\n'
    """


@dialects.command("list")
def list_dialects() -> None:
    r"""List all dialects: their names, and whether they can be exported.

    \b
    Example:
      toolspeak dialects list
    """
    from toolspeak.cli.terminal import visible  # noqa: PLC0415 # `--help` must not load readers
    from toolspeak.dialects import installed  # noqa: PLC0415 # as above
    from toolspeak.dialects.template_export import Unfit, export  # noqa: PLC0415 # as above

    for dialect in installed():
        found = export(dialect, "-")
        click.echo(visible(f"{dialect.name:<16} {f'no: {found.reason}' if isinstance(found, Unfit) else 'exports'}"))


@dialects.command("export")
@click.argument("name")
@click.option(
    "--start-anchor",
    required=True,
    metavar="TEXT",
    help="The end of the model's generation prompt, such as '<|im_start|>assistant\\n'; \\n is a newline.",
)
def export_dialect(name: str, start_anchor: str) -> None:
    r"""Print a dialect as the response_template of a tokenizer_config.json, which transformers, vLLM and SGLang read.

    \b
    Example:
      toolspeak dialects export qwen_xml --start-anchor '<|im_start|>assistant\n'
    """
    from toolspeak.dialects import load  # noqa: PLC0415 # `--help` must not load readers
    from toolspeak.dialects.template_export import Unfit, export  # noqa: PLC0415 # as above
    from toolspeak.errors import BadRequest  # noqa: PLC0415 # as above

    template = export(load(name), start_anchor.replace("\\n", "\n"))
    if isinstance(template, Unfit):
        raise BadRequest(
            f"{name} does not fit into a response_template: {template.reason}. "
            "`toolspeak dialects list` shows the dialects that do."
        )
    click.echo(json.dumps({"response_template": template}, indent=2, ensure_ascii=False))

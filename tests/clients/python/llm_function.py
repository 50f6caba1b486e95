"""The tool for `llm`, which offers every function of a file."""


def write_note(text: str) -> str:
    """Write a note into the file out.txt."""
    from pathlib import Path  # noqa: PLC0415  what is imported outside would be offered as well
    from secrets import token_hex  # noqa: PLC0415

    Path("out.txt").write_text(text, encoding="utf-8")
    return f"kept-{token_hex(4)}"

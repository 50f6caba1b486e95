"""examples/notebook.ipynb, executed cell by cell: a LangChain agent in three cells."""

import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import rows
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[3] / "examples" / "notebook.ipynb"
STATION = "station-0a1b2c3d"
CELLS = 3


def execute(host: SimpleNamespace, weather: rows.Weather) -> str:
    """Execute the cells as they are written, but for the address and the station; return the answer that is printed."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert rows.ADDRESS in text
    assert STATION in text
    text = text.replace(rows.ADDRESS, host.address).replace(STATION, weather.station)
    notebook = nbformat.reads(text, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) == CELLS, len(cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    printed = "".join(output.get("text", "") for output in cells[-1].outputs)
    weather.cities += re.findall(r"city: (\w+)", printed)  # the tool ran in the kernel: LangChain prints its calls
    return printed.rpartition("Ai Message")[2]


rows.run("notebook", ("langchain", "langchain-openai"), {"sync, whole": execute}, rows.address)

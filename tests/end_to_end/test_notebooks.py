"""The notebooks of docs/notebooks run from top to bottom, and the outputs that are stored in them are those of a run."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}
    )
    return client.execute()


def outputs(notebook: Any) -> list[str]:
    """What each cell printed or showed, without what differs by machine: speeds, ids, the engine, digits behind the point."""
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            text = output.get("text") or output["data"]["text/plain"]
            text = re.sub(r"samples/s .*", "", text)
            text = re.sub(r"[0-9a-f]{12,64}", "", text)
            text = re.sub(r"\.\d+|native|reference", "", text)
            shown.append(text)
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs_and_shows_what_is_stored(path: Path) -> None:
    stored = outputs(nbformat.read(path, as_version=4))
    assert stored
    assert outputs(run(path)) == stored


def record() -> None:
    """Run every notebook and store its outputs: `python -m tests.end_to_end.test_notebooks`."""
    for path in NOTEBOOKS:
        notebook = run(path)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    record()

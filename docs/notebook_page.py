"""Write docs/notebook.ipynb with what its cells give now: `python -m docs.notebook_page` in the project's root."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.world.sketch.films import write_films

PAGE = Path(__file__).resolve().parent / "notebook.ipynb"
CELLS = (
    ("markdown", "# In a notebook\n\nThree drawn films (`python -m tests.world.sample films --hours 0.02 --seed 3 "
     "--form independent`) are indexed, searched and asked about. Pictures play the video from there on."),
    ("code", 'import kinodex\n\nspace = "towers:tests/world/space/towers"\n'
     'kinodex.ingest("films", library="library", space=space).count("indexed")'),
    ("code", 'library = kinodex.open("library")\nlibrary'),
    ("code", 'library.search("a black bird at sea", k=3, min_gap_s=5.0, in_="frames")'),
    ("code", 'library.ask("What colour is the bird at sea?", options=["red", "black", "white"])'),
)  # fmt: skip


def executed(films: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with the results of its cells, run in `folder` beside links to the films and to these tests."""
    (folder / "films").symlink_to(films)
    (folder / "tests").symlink_to(PAGE.parent.parent / "tests")
    made = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book = nbformat.v4.new_notebook(cells=[made[kind](text, id=f"cell-{at}") for at, (kind, text) in enumerate(CELLS)])
    kept = signal.getsignal(signal.SIGINT)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    signal.signal(signal.SIGINT, kept)  # which its event loop leaves as Python's own
    for cell in book.cells:
        cell.metadata.clear()  # when it ran
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.output_type == "execute_result"]  # no bars
            for each in cell.outputs:
                shown = "text/html" if "text/html" in each.data else "text/plain"
                each.data = {shown: each.data[shown].replace(f"{folder}/", "")}
    return book


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        films = Path(folder) / "drawn"
        write_films(films, 0.02, 3)
        nbformat.write(executed(films, Path(folder)), PAGE)


if __name__ == "__main__":
    main()

"""The picture of the rooms shows the folders that there are, as docs/architecture_picture.py draws them."""

from __future__ import annotations

from pathlib import Path

from docs.architecture_picture import FOLDERS, picture

HERE = Path(__file__).parents[2]


def test_the_picture_shows_every_folder_of_every_room():
    assert {name: sorted(folders) for name, folders in FOLDERS.items()} == {
        name: sorted(each.parent.name for each in (HERE / name).glob("*/__init__.py") if not each.parent.is_symlink())
        for name in FOLDERS
    }


def test_the_file_is_what_the_script_draws():
    drawn = (HERE / "docs/pictures/architecture.svg").read_text()
    assert drawn == picture(), "run: python -m docs.architecture_picture > docs/pictures/architecture.svg"

"""The public names of `index`: each can be imported, is documented, and loads nothing heavy before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import index
from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope

HEAVY = {"lance", "torch", "open_clip", "pyarrow", "numpy", "transformers", "huggingface_hub"}


@pytest.mark.parametrize("name", index.__all__)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    exported = getattr(index, name)
    assert exported.__name__ == name
    assert exported.__module__.startswith("index.")
    assert exported.__doc__


def test_public_names_are_sorted_and_listed() -> None:
    assert sorted(index.__all__) == index.__all__
    assert set(index.__all__) <= set(dir(index))


def test_they_are_the_ones_of_their_modules() -> None:
    assert (index.Library, index.Scope, index.Hit) == (Library, Scope, Hit)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "Libary"
    with pytest.raises(AttributeError, match="module 'index' has no attribute 'Libary'"):
        getattr(index, name)


def test_importing_the_room_loads_nothing_heavy() -> None:
    script = "import index, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "index" in loaded
    assert not HEAVY & {*loaded}

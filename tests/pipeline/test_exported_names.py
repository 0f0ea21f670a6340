"""The public names of `pipeline`: each is there, none costs anything before its use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pipeline
from kinodex.pipeline.decoding.open import DECODERS, open_video
from kinodex.pipeline.sources import list_sources

HEAVY = {"numpy", "av", "torch", "fsspec", "PIL", "decord", "torchcodec"}


def test_every_name_has_one_home() -> None:
    names = sorted(name for names in pipeline._MODULES.values() for name in names)
    assert names == sorted(pipeline.__all__)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", sorted(set(pipeline.__all__) - {"DECODERS"}))
def test_a_name_is_the_one_of_its_module_and_documented(name: str) -> None:
    found = getattr(pipeline, name)
    assert found.__module__ == pipeline._HOMES[name]
    assert found.__doc__


def test_names_are_those_that_are_imported_from_their_modules() -> None:
    assert (pipeline.DECODERS, pipeline.open_video, pipeline.list_sources) == (DECODERS, open_video, list_sources)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    misspelt = "open_vidoe"
    with pytest.raises(AttributeError, match=r"no attribute 'open_vidoe'; its names are .*open_video"):
        getattr(pipeline, misspelt)


def test_importing_it_loads_nothing_heavy() -> None:
    script = "import pipeline, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "pipeline" in loaded
    assert not HEAVY & set(loaded)

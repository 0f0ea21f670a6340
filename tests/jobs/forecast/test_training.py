from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.jobs.forecast import describe_helper_calls
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.train.rollouts import MasterSettings
from tests.support.libraries.sketch_library import SketchLibrary


@pytest.mark.slow
def test_helper_calls_grow_with_the_rollouts(copy_sketches: Callable[[Path], SketchLibrary], tmp_path: Path) -> None:
    sketches = copy_sketches(tmp_path)
    films = {each.film: sketches.films[Path(each.film).stem] for each in sketches.known}
    choice = replace(ModelChoice("m", "http://127.0.0.1:9/v1"), input_price=1.0)
    once = describe_helper_calls(MasterSettings.read(steps=1), sketches.known, films, choice)
    thrice = describe_helper_calls(MasterSettings.read(steps=3), sketches.known, films, choice)
    assert _calls(once) > 0 and _calls(thrice) == pytest.approx(3 * _calls(once), abs=2)
    assert "cost 0," not in once


def _calls(line: str) -> int:
    return int(line.partition("about ")[2].partition(" calls")[0].replace(",", ""))

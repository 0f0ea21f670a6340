"""Films by their forms: a story, its shots in another order, and shots by themselves; and folders that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from tests.world.sample import FORMS, Form, main, sample
from tests.world.sketch.script import FPS


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_its_script_its_questions_and_what_is_spoken(form: Form, tmp_path: Path) -> None:
    (film,) = sample(tmp_path, 0.0, 3, form=form, minutes=0.5, every=FPS)
    script = json.loads(film.with_suffix(".script.json").read_text())
    assert ("scenes" in script, film.with_suffix(".srt").stat().st_size > 0) == (form != "independent", True)
    questions = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert questions and {each["video"] for each in questions} == {"film-01.mp4"}


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(UsageError, match="already exists; give a new or an empty folder"):
            main(place)

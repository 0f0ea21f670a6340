"""Question sets of simulations: generated ones, and those of a real annotation file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kinodex.jobs.errors import UsageError
from tests.sketch.simulation import describe, make_questions, read_questions


def test_made_questions_are_like_lvbench():
    questions = make_questions(1000, seed=3)
    lengths_s = {each.video: each.duration_s for each in questions}
    shown_s = [end_s - start_s for each in questions for start_s, end_s in each.evidence]
    assert len(lengths_s) == 200
    assert np.mean(list(lengths_s.values())) == pytest.approx(4101, rel=0.08)
    assert min(lengths_s.values()) >= 1800
    assert np.median(shown_s) == pytest.approx(20, rel=0.15)
    assert all(0 <= each.evidence[0][0] < each.evidence[0][1] <= each.duration_s for each in questions)
    assert {each.option for each in questions} == {0, 1, 2, 3}
    assert make_questions(1000, seed=3) == questions
    assert "1000 questions about 200 videos" in describe(questions)


def annotation_file(folder: Path, **changed: object) -> Path:
    qa = {
        "uid": "1",
        "question": "What is seen?\n(A) a boat\n(B) a car\n(C) a tree\n(D) a fish",
        "answer": "B",
        "question_type": ["key information retrieval"],
        "time_reference": "10:15-10:35",
    }
    row = {
        "key": "made-up",
        "type": "sport",
        "video_info": {"duration_minutes": 61.0, "fps": 25.0, "resolution": {"width": 640, "height": 360}},
        "qa": [qa | changed, qa | {"uid": "2", "time_reference": "20:00-21:00"} | changed],
    }
    path = folder / "video_info.meta.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_an_annotation_file_gives_lengths_and_time_references(tmp_path):
    first, second = read_questions(annotation_file(tmp_path), 10, seed=0)
    assert (first.evidence, first.option, first.options) == (((615.0, 635.0),), 1, 4)
    assert (second.evidence, second.duration_s, second.video) == (((1200.0, 1260.0),), 3660.0, "made-up")
    assert len(read_questions(annotation_file(tmp_path), 1, seed=0)) == 1


def test_an_annotation_file_without_times_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no question has a time reference|no question of LVBench can be read"):
        read_questions(annotation_file(tmp_path, time_reference=""), 10, seed=0)

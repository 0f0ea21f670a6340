"""ActivityNet Captions as published: an object of videos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from tests.support.runs.moment_files import problems

VIDEOS = {
    "v_a": {"duration": 30, "timestamps": [[10, 20], [25, 30.5]], "sentences": [" He jumps.", "A man runs."]},
    "v_b": {"duration": 9, "timestamps": [[0, 9]], "sentences": []},
    "v_c": {"duration": 9, "timestamps": [[9, 9.5], [0, 1]], "sentences": ["A dog barks.", " "]},
    "v_d": 3,
}


def test_activitynet_captions(tmp_path: Path) -> None:
    file = tmp_path / "val_1.json"
    file.write_text(json.dumps(VIDEOS))
    benchmark = read_moment_benchmark("activitynet-captions", file)
    jump, run = benchmark.samples
    assert (jump.sample_id, jump.text, jump.relevant) == ("v_a-0", "He jumps.", (("v_a", 10.0, 20.0),))
    assert (run.relevant, run.duration_s) == ((("v_a", 25.0, 30.0),), 30.0)
    rows = dict(problems(benchmark)[1:])
    assert "the moment is cut there" in rows["video v_a, sentence 1"]
    assert "as long as that of sentences" in rows["video v_b"]
    assert "sentence: got no words" in rows["video v_c, sentence 1"]
    assert "video v_d" in rows


def test_a_list_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "val_1.json"
    file.write_text("[]")
    with pytest.raises(UsageError, match="no object of videos"):
        read_moment_benchmark("activitynet-captions", file)

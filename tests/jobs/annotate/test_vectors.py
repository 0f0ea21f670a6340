"""Vectors of all stored frames in a further space."""

from __future__ import annotations

import numpy as np
import torch

from kinodex.index.rows import Scope
from kinodex.index.spaces.space import load_space
from tests.support.command import json_of
from tests.support.models import stage_models as stage_kit


def test_another_space_gives_every_frame_a_second_vector(kinodex, library, tiny_model):
    name = f"local-dir:{tiny_model('space')}"
    made = json_of(kinodex, "add", "vectors", library.uri, "--space", name, "--batch", 4)
    assert (made["added"], made["rows"]) == (3, sum(row.frames for row in library.videos()))
    assert made["arithmetic"] == f"float32, torch {torch.__version__}"
    assert {each["arithmetic"] for each in made["outcomes"]} == {made["arithmetic"]}
    run = library.ingest_log.runs()[0]
    assert (run.kind, run.report["arithmetic"]) == ("add vectors", made["arithmetic"])
    shown = kinodex("report", library.uri, "--run", run.run_id).out
    assert f"vectors made in {made['arithmetic']}\n" in shown
    assert shown.count(made["arithmetic"]) == 1
    space = load_space(name)
    video = library.videos()[1]
    vectors = library.vectors(video.video_id, space=name)
    frames = library.frames(video.video_id, vectors.frame_no.tolist())
    pictures = [stage_kit.rgb_of(frame.jpeg) for frame in frames]
    expected = space.embed(np.stack([space.prepare(picture) for picture in pictures]))
    assert np.allclose(vectors.vectors.astype(float), expected.astype(float), atol=2e-3)
    best = library.search.frames(expected[2], Scope((video.video_id,)), k=1, space=name)[0]
    assert best.frame_no == vectors.frame_no[2]
    own = kinodex("add", "vectors", library.uri, "--space", "builtin")
    assert own.code == 4
    assert "own: every frame has its vector" in own.error_line

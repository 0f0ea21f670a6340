"""A detector for agents: looks for a word in stored frames, and says where its model cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from kinodex.agent.protocol import ShownFrame
from kinodex.index.library import Library
from kinodex.jobs.open import detect_with
from kinodex.pipeline.errors import ModelUnusable


@pytest.fixture
def frames(library: Library) -> list[ShownFrame]:
    video = library.video("film-0")
    numbers = library.vectors(video.video_id).frame_no.tolist()
    return [ShownFrame(**asdict(frame)) for frame in library.frames(video.video_id, numbers)]


def test_a_closed_detector_finds_its_own_labels_and_no_others(
    library: Library, frames: list[ShownFrame], tiny_model: Callable[[str], Path]
) -> None:
    model = str(tiny_model("rt_detr"))
    detect = detect_with(library, model, min_score=0.0)
    found = {label: detect(frames, label.title()) or [] for label in ("boat", "kite", "cat")}
    assert any(found.values())  # of a model with random weights it is open which
    for label, rows in found.items():
        assert {(row.label, row.model, row.video_id) for row in rows} <= {(label, model, frames[0].video_id)}
        assert {row.time_s for row in rows} <= {frame.time_s for frame in frames}
    assert detect(frames, "a word that it does not know") is None
    assert detect([], "boat") == []


def test_an_open_detector_is_asked_for_any_word(
    library: Library, frames: list[ShownFrame], tiny_model: Callable[[str], Path]
) -> None:
    found = detect_with(library, str(tiny_model("owlv2")), min_score=0.0)(frames[:2], "Red Kite")
    assert found
    assert {row.label for row in found} == {"red kite"}


def test_a_model_that_is_not_there_is_an_error_at_once(library: Library, tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="nothing"):
        detect_with(library, str(tmp_path / "nothing"))

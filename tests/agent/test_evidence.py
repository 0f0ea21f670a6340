"""Evidence of an answer: the ranges of what it cites, of all that was shown if it cites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.agent.answer import Evidence, cited_items, evidence_ranges, shown_numbers
from kinodex.agent.environment import Environment
from kinodex.agent.protocol import Note, ShownFrame
from tests.support.libraries.agent_library import environment_of, film, make_library


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder: Path = tmp_path_factory.mktemp("evidence")
    return environment_of(make_library(folder, {"film": film(1, 60)}))


def test_frames_then_notes_are_cited_by_their_numbers_and_neighbours_are_joined(environment: Environment) -> None:
    video_id = environment.videos[0].video_id
    frames = environment.frames(video_id, [3.0, 4.0, 9.0])
    shown: tuple[ShownFrame | Note, ...] = (*frames, Note(video_id, 10.0, 12.0, "caption", "a kite"))
    assert shown_numbers(shown) == [1, 2, 3, 4]
    assert evidence_ranges(environment, shown, [1, 2]) == (Evidence(video_id, 3.0, 5.0),)
    assert evidence_ranges(environment, shown, [4, 3, 99]) == (Evidence(video_id, 9.0, 12.0),)
    everything = (Evidence(video_id, 3.0, 5.0), Evidence(video_id, 9.0, 12.0))
    assert evidence_ranges(environment, shown, []) == evidence_ranges(environment, shown, [0, 99]) == everything


def test_a_look_that_failed_is_no_evidence(environment: Environment) -> None:
    video_id = environment.videos[0].video_id
    seen, failed = Note(video_id, 1.0, 2.0, "t", "a kite"), Note(video_id, 5.0, 6.0, "t", "no reply", failed=True)
    assert cited_items((seen, failed), [2]) == []
    assert cited_items((seen, failed), []) == [seen]

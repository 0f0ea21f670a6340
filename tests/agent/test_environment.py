"""The environment of an agent: frames, their times, and the words spoken, of its videos and no others."""

from __future__ import annotations

import numpy as np

from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.rows import SpeechRow
from tests.support.libraries.agent_library import environment_of, film, make_library


def test_search_keeps_matches_apart_and_texts_on_one_scale(kites):
    video_id = kites.videos[0].video_id
    found = kites.search(["red kite desert", "white submarine"], video_id, k=3, min_gap_s=4.0)
    red = [match for match in found if match.query == "red kite desert"]
    assert {700 <= match.time_s < 712 for match in red[:2]} == {True}
    assert min(np.diff(sorted(match.time_s for match in red))) >= 4.0
    assert red[0].similarity > max(match.similarity for match in found if match.query == "white submarine")


def test_frames_come_once_each_in_time_order(kites):
    video_id = kites.videos[0].video_id
    frames = kites.frames(video_id, [30.2, 5.0, 29.9])
    assert [(frame.frame_no, frame.time_s) for frame in frames] == [(5, 5.0), (30, 30.0)]
    assert kites.frames(video_id, []) == ()


def test_what_is_said_is_found_where_pictures_show_nothing_of_it(tmp_path):
    """Also what is spoken of counts as much as it is rare: not by the share of words alone."""
    library = make_library(tmp_path, {"film": film(5, 400, {80: ("red kite desert", 10)})})
    video_id = library.video("film").video_id
    said = {200.0: "Now the captain hides her silver compass"}
    said |= {6.0 * at + 1: f"we went on to the next house {at}" for at in range(60)}
    rows = [SpeechRow(video_id, at_s, at_s + 3.0, said[at_s], "sidecar") for at_s in sorted(said)]
    library.writer.add_speech({video_id: rows})
    environment = environment_of(library)
    kinds: dict[AnchorsFrom, list[float]] = {"all": [201.0], "frames": [], "words": [201.0]}
    for kind, times_s in kinds.items():
        found = environment.search(["the captain hides a compass"], video_id, 4, 4.0, anchors_from=kind)
        assert [each.time_s for each in found if each.similarity > 0.4] == times_s, kind
        assert found[0].by_words or kind == "frames"

"""Equally spaced frames: shared out among videos by duration, of videos with pictures only."""

from __future__ import annotations

from pathlib import Path

from kinodex.agent.tools.captions import uniform_frames, uniform_times
from kinodex.index.library import Library
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.libraries.text_library import text_video_id


def test_videos_get_their_share_of_the_frames_by_duration(tmp_path: Path) -> None:
    library = make_library(tmp_path / "library", {"short": film(1, 30), "long": film(2, 90)})
    environment = environment_of(library)
    times_s = uniform_times(environment, 8)
    counts = {video.title: len(times_s[video.video_id]) for video in environment.videos}
    assert counts == {"short": 2, "long": 6}
    short = library.video("short").video_id
    assert times_s[short] == [10.0, 20.0]
    shown = uniform_frames(environment, times_s)
    assert [frame.time_s for frame in shown if frame.video_id == short] == [10.0, 20.0]
    assert len(shown) == 8


def test_a_short_video_gives_the_frames_that_it_has(tmp_path: Path) -> None:
    environment = environment_of(make_library(tmp_path / "library", {"short": film(1, 3)}))
    assert sum(map(len, uniform_times(environment, 8).values())) == 3


def test_words_have_times_and_no_frames(words_library: Library) -> None:
    environment = environment_of(words_library, "told", "film")
    times_s = uniform_times(environment, 6)
    assert len(times_s[text_video_id("told")]) == 3
    shown = uniform_frames(environment, times_s)
    assert {frame.video_id for frame in shown} == {words_library.video("film").video_id}

"""A made-up film has what the page of a video draws, and is made once."""

from __future__ import annotations

from kinodex.web.inputs import video_view
from tests.bench.page import make_long_film


def test_a_film_has_shots_lines_and_detections_from_end_to_end_and_is_made_once(tmp_path):
    library = make_long_film(str(tmp_path / "film"), 90)
    (row,) = library.videos()
    view = video_view(library, row.video_id)
    assert view["times_s"] == list(range(90)) and row.segments == len(view["segments"]) > 3
    assert view["segments"][0]["start_s"] == 0 and view["segments"][-1]["end_s"] == 90
    assert len(view["transcript"]) == 36 and len(view["detected"]) > 1
    version = library.tables.version("frames")
    assert make_long_film(library.uri, 90).tables.version("frames") == version


def test_an_annotated_one_has_speakers_text_captions_and_chapters_too(tmp_path):
    library = make_long_film(str(tmp_path / "film"), 900, is_annotated=True)
    view = video_view(library, library.videos()[0].video_id)
    assert {"Ada", "speaker 4"} <= {each["speaker"] for each in view["transcript"]}
    assert len(view["screen_text"]) == 180 and len(view["captions"]) == len(view["segments"])
    chapters, scenes = ([each for each in view["contents"] if each["level"] == level] for level in ("chapter", "scene"))
    assert 1 < len(chapters) < len(scenes) and all(each["title"] and each["text"] for each in chapters)
    assert (chapters[0]["start_s"], chapters[-1]["end_s"]) == (0.0, 900.0)

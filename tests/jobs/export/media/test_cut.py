"""Clips are compared with the pictures that the library keeps: what differs is cut another way, or is no clip."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.export.media import cut_copied, cut_exactly
from kinodex.pipeline.errors import VideoError, WrongClip
from tests.pipeline.media.test_clips import H264, pictures
from tests.support.ffmpeg import grey_film, needs_ffmpeg
from tests.support.models.stage_models import library_of, tiny_film


def test_a_clip_of_other_pictures_than_the_library_keeps_is_none(tmp_path: Path) -> None:
    film, other = tiny_film(tmp_path / "film.mp4", 6, 1), tiny_film(tmp_path / "other.mp4", 6, 2)
    library = library_of(tmp_path / "library", [film])
    video, out = library.videos()[0], tmp_path / "clip"
    assert cut_exactly(library, video, film, out, [(4.0, 5.0), (1.0, 2.0)], subtitles=True).path.exists()
    assert cut_copied(library, video, film, out, (1.0, 2.0), subtitles=True).path.exists()
    with pytest.raises(WrongClip, match="shows another picture"):
        cut_exactly(library, video, other, out, [(4.0, 5.0), (1.0, 2.0)], subtitles=True)
    with pytest.raises(WrongClip, match="shows another picture"):
        cut_copied(library, video, other, out, (1.0, 2.0), subtitles=True)
    assert not list(tmp_path.glob("clip*"))


@needs_ffmpeg
def test_a_film_whose_clock_is_reset_is_cut_where_the_library_has_it(tmp_path: Path) -> None:
    part = grey_film(tmp_path / "part.ts", *H264, "-c:a", "aac")
    film = tmp_path / "film.ts"
    film.write_bytes(2 * part.read_bytes())
    library, whole = library_of(tmp_path / "library", [film]), pictures(film)
    video = library.videos()[0]
    start_s, end_s = video.start_s + 15.1, video.start_s + 17.3
    cut = cut_exactly(library, video, film, tmp_path / "clip", [(start_s, end_s)], subtitles=False)
    first_s, last_s = start_s + video.zero_s, end_s + video.zero_s
    asked = [grey for begin, until, grey in whole if until - first_s > 2e-5 and last_s - begin > 2e-5]
    assert [grey for *_, grey in pictures(cut.path)] == asked != []
    with pytest.raises((VideoError, WrongClip)):
        cut_copied(library, video, film, tmp_path / "copied", (start_s, end_s), subtitles=False)
    assert not list(tmp_path.glob("copied*"))

"""An opened library: found by words, picture, array and vector; frames as pictures; vectors as numpy and Arrow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import kinodex
from kinodex.index.library import Library
from tests.support.screen_text.lines import Line, add_screen_text
from tests.world.drawn_space import DRAWN


@pytest.fixture(scope="module")
def opened(library: Path) -> kinodex.Library:
    return kinodex.open(library)


def test_words_picture_array_and_vector_find_the_same_frame(opened: kinodex.Library) -> None:
    (hit,) = opened.search("a black bird at sea", in_="frames", k=1)
    frame = opened.frame(hit)
    for query in (frame.image, frame.array, opened.embed(frame.image), 7.0 * opened.embed(frame.array)):
        (same,) = opened.search(query, k=1)
        assert (same.video_id, same.frame_no) == (hit.video_id, hit.frame_no)
        assert same.score > 0.99


def test_text_on_screen_is_read_and_searched(library: Path, tmp_path: Path) -> None:
    inner = Library.open(str(shutil.copytree(library, tmp_path / "library")))
    film = inner.videos()[0]
    opened = kinodex.open(inner.uri)
    assert opened.screen_text(film) == []
    with pytest.raises(kinodex.UsageError, match="`kinodex add screen_text` makes it"):
        opened.search("harbour", in_="screen_text")
    add_screen_text(inner, film.video_id, [Line(1.0, 3.0, "HARBOUR"), Line(4.0, 6.0, "THE END")])
    assert [line.text for line in opened.screen_text(film, 4.0)] == ["THE END"]
    (hit,) = opened.search("harbour", in_="screen_text")
    assert (hit.text, hit.found_in, opened.frame(hit).time_s) == ("HARBOUR", "screen_text", 1.0)


def test_frames_are_pictures_and_arrays_at_their_times(opened: kinodex.Library) -> None:
    film = opened.video("film-01")
    early, late = opened.frames("film-01", [0.5, 14.9])  # on screen then; the nearest of the second is that of 15 s
    assert (early.time_s, late.time_s) == (0.0, 14.0)
    assert late.image.mode == "RGB" and late.image.size == (late.width_px, late.height_px)
    assert late.array.shape == (late.height_px, late.width_px, 3) and late.array.dtype == np.uint8
    stored = list(opened.all_frames(film.video_id))
    assert len(stored) == film.frames
    assert [frame.time_s for frame in stored] == sorted(frame.time_s for frame in stored)


def test_a_damaged_picture_is_an_error_of_its_own(opened: kinodex.Library) -> None:
    frame = kinodex.Frame("a" * 32, 3, 3.0, 8, 8, b"no picture")
    with pytest.raises(kinodex.PipelineError, match="frame 3 of video aaaaaaaaaaaa"):
        frame.image  # noqa: B018


def test_vectors_come_as_numpy_and_as_arrow(opened: kinodex.Library) -> None:
    films = opened.videos()
    stored = opened.vectors(films[0].title)
    table = opened.vectors_table()
    assert stored.vectors.shape[0] == len(stored.time_s) == films[0].frames
    assert np.allclose(np.linalg.norm(stored.vectors.astype(np.float32), axis=1), 1.0, atol=1e-2)
    assert table.column_names == ["video_id", "frame_no", "time_s", "vector"]
    assert table.num_rows == sum(film.frames for film in films)
    one = opened.vectors_table(films[0].title)
    assert np.array_equal(np.stack(one["vector"].to_numpy()), stored.vectors)


def test_what_is_not_there_is_said(opened: kinodex.Library, tmp_path: Path) -> None:
    with pytest.raises(kinodex.LibraryError, match="film-99"):
        opened.video("film-99")
    with pytest.raises(kinodex.LibraryError, match="where there is no library"):
        kinodex.open(tmp_path / "nothing")
    with pytest.raises(kinodex.LibraryError, match="ViT-X"):
        kinodex.open(opened.uri, space="ViT-X")


def test_the_other_tables_are_read_by_any_name_of_a_video(opened: kinodex.Library) -> None:
    film = opened.video("film-01")
    assert opened.segments("film-01") == opened.segments(film.video_id[:12])
    assert opened.captions("film-01") == [] == opened.detections("film-01")
    assert opened.info().frames == sum(each.frames for each in opened.videos())
    assert repr(opened) == f"kinodex.open({opened.uri!r})"


def test_one_time_is_refused_and_a_row_names_its_video(opened: kinodex.Library) -> None:
    film = opened.videos()[0]
    assert opened.frames(film, [0.0]) == opened.frames(film.title, [0.0])
    assert "jpeg" not in repr(opened.frames(film, [0.0])[0])
    with pytest.raises(kinodex.UsageError, match="give a list of finite seconds"):
        opened.frames(film, cast(Any, 3.0))


def test_drawn_films_are_no_duplicates_of_each_other(opened: kinodex.Library) -> None:
    assert opened.duplicates() == []
    with pytest.raises(kinodex.UsageError, match="give more than 0"):
        opened.duplicates(opened.videos()[0], min_s=0)


def test_ranges_are_given_by_search_or_with_an_agent(opened: kinodex.Library) -> None:
    found = opened.ground("a bird", videos="film-01", k=2)
    assert isinstance(found, kinodex.Grounding)
    assert found.present is None and 1 <= len(found.ranges) <= 2
    assert all(isinstance(each, kinodex.Moment) and each.video.title == "film-01" for each in found.ranges)
    assert opened.ground("zzzzqqq", in_="words").ranges == ()
    assert opened.ground("a bird", videos="film-01", agent="uniform", cache=False).by == "uniform"
    with pytest.raises(kinodex.UsageError, match="got a model, and nothing for it to do"):
        opened.ground("a bird", model="gpt-4o")


@pytest.mark.slow
def test_films_are_indexed_once(films: Path, tmp_path: Path) -> None:
    film, place = films / "film-01.mp4", tmp_path / "library"
    seen: list[object] = []
    first = kinodex.ingest([film], library=place, space=DRAWN, workers=1, on_progress=seen.append)
    again = kinodex.ingest(film, library=place)
    assert (first.count("indexed"), again.count("indexed"), again.left_out) == (1, 0, 1)
    assert seen
    assert [video.title for video in kinodex.open(place).videos()] == ["film-01"]


def test_bad_arguments_of_an_ingest_are_refused(films: Path, tmp_path: Path) -> None:
    with pytest.raises(kinodex.UsageError, match="ingest: got fsp, which is no setting; did you mean fps"):
        kinodex.ingest(films, library=tmp_path / "library", fsp=2)
    with pytest.raises(kinodex.UsageError, match="got nothing to index"):
        kinodex.ingest(library=tmp_path / "library")
    with pytest.raises(kinodex.PipelineError, match=r"none\.mp4"):
        kinodex.ingest(tmp_path / "none.mp4", library=tmp_path / "library", space=DRAWN)
    assert not (tmp_path / "library").exists()

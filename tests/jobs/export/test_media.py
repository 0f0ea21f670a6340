"""Frames and clips of moments, opened again by Pillow and PyAV, and compared with what the library keeps."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import av
import pytest
from PIL import Image

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.clips import MANIFEST, export_clips
from kinodex.jobs.export.cutting import CutWay, cut_copied, cut_exactly
from kinodex.jobs.export.frames import TABLE, export_frames
from kinodex.jobs.export.joined_clips import export_joined, join_clips, merged_ranges
from kinodex.jobs.export.moments import Moment
from kinodex.pipeline.errors import VideoError, WrongClip
from kinodex.pipeline.subtitles.lines import embedded_lines
from tests.pipeline.media.test_clips import H264, pictures
from tests.support.ffmpeg import grey_film, needs_ffmpeg
from tests.support.models.stage_models import library_of, tiny_film


def test_frames_of_moments_and_their_table(opened: Library, tmp_path: Path) -> None:
    film = opened.video("film-02")
    moments = [Moment(film, 4.0, 8.0, "one"), Moment(film, 7.0, 9.0), Moment(film, 10.2, 10.3)]
    rows = export_frames(opened, moments, tmp_path / "out")
    assert [row["time_s"] for row in rows] == [4.0, 5.0, 6.0, 7.0, 7.0, 8.0, 10.0]
    assert rows[3]["file"] == rows[4]["file"]
    with (tmp_path / "out" / TABLE).open(newline="") as file:
        assert [row["file"] for row in csv.DictReader(file)] == [row["file"] for row in rows]
    with Image.open(tmp_path / "out" / rows[0]["file"]) as picture:
        assert picture.size == (rows[0]["width_px"], rows[0]["height_px"])
    stored = opened.frames(film.video_id, [rows[0]["frame_no"]])[0]
    assert (tmp_path / "out" / rows[0]["file"]).read_bytes() == stored.jpeg


def moment(library: Library, title: str, start_s: float, end_s: float, label: str = "") -> Moment:
    return Moment(library.video(title), start_s, end_s, label)


def seconds(path: Path) -> float:
    """Length of a film by its pictures."""
    with av.open(str(path)) as container:
        times = [frame.time or 0.0 for frame in container.decode(video=0)]
        return times[-1] - times[0]


@pytest.mark.slow
def test_a_clip_each_and_a_manifest(opened: Library, tmp_path: Path) -> None:
    line = next(each for each in opened.speech(opened.video("film-01").video_id) if "code word" in each.text)
    spoken = moment(opened, "film-01", line.start_s - 1.0, line.end_s, "said")
    moments = [spoken, moment(opened, "film-02", 4.0, 6.0), moment(opened, "film-02", 4.0, 6.0)]
    rows = export_clips(opened, moments, tmp_path / "out", CutWay(exact=True))
    names = ["film-01", "film-02", "film-02"]
    assert [row.file.partition("_")[0] for row in rows] == names
    assert rows[2].file == rows[1].file.replace(".mp4", "_2.mp4")
    with (tmp_path / "out" / MANIFEST).open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["file"] for row in table] == [row.file for row in rows]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*(row.file for row in rows), MANIFEST])
    first = tmp_path / "out" / rows[0].file
    assert seconds(first) == pytest.approx(spoken.end_s - spoken.start_s, abs=0.1)
    (shown,) = [each for each in embedded_lines(first, "clip") if each.text]
    assert (shown.text, rows[0].subtitle_lines) == (line.text, 1)
    assert shown.start_s == pytest.approx(1.0, abs=0.01)


def test_a_source_that_is_gone_or_changed_is_a_row_and_others_go_on(
    small_library: Path, small_films: list[Path], tmp_path: Path
) -> None:
    library = Library.open(str(small_library))
    copies = [Path(shutil.copy(path, tmp_path / path.name)) for path in small_films]
    with copies[1].open("ab") as file:
        file.write(b"more")
    copies[2].unlink()
    moments = [
        Moment(replace(library.video(path.stem), uri=str(copy)), 1.0, 2.0)
        for path, copy in zip(small_films, copies, strict=True)
    ]
    text_only = Moment(replace(moments[0].video, frames=0, title="words"), 1.0, 2.0)
    rows = export_clips(library, [*moments, text_only], tmp_path / "out", CutWay())
    assert [bool(row.file) for row in rows[:3]] == [True, False, False]
    assert "holds other bytes than those that were indexed" in rows[1].error
    assert "nothing is there" in rows[2].error
    assert (tmp_path / "out" / rows[0].file).is_file()


def test_it_goes_on_after_it_was_interrupted(opened: Library, tmp_path: Path) -> None:
    moments = [moment(opened, "film-02", second, second + 1.0) for second in (1.0, 3.0)]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_clips(opened, moments, tmp_path / "out", CutWay(), stop)
    made: list[int] = []
    rows = export_clips(opened, moments, tmp_path / "out", CutWay(), lambda done, total: made.append(done))
    assert made == [2]
    assert [bool(row.file) for row in rows] == [True, True]
    with pytest.raises(UsageError, match="which is not empty"):
        export_clips(opened, moments, tmp_path / "out", CutWay())


@pytest.mark.slow
def test_ranges_are_joined_a_file_a_video(opened, tmp_path: Path) -> None:
    ranges = [moment(opened, "film-02", *each) for each in ((8.0, 9.0), (1.0, 2.0), (1.5, 3.0))]
    assert merged_ranges(ranges) == ((1.0, 3.0), (8.0, 9.0))
    (one,) = join_clips(opened, ranges, tmp_path / "evidence.mp4")
    assert (one.path.name, one.ranges) == ("evidence.mp4", ((1.0, 3.0), (8.0, 9.0)))
    assert seconds(one.path) == pytest.approx(3.0, abs=0.1)
    both = join_clips(opened, [*ranges, moment(opened, "film-01", 0.0, 1.0)], tmp_path / "two.mp4")
    assert [each.path.name for each in both] == ["two-1.mp4", "two-2.mp4"]
    (joined,) = export_joined(opened, ranges, tmp_path / "folder")
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == [MANIFEST, "film-02.mp4"]
    assert joined.path.is_file()
    with pytest.raises(UsageError, match="which is there already"):
        join_clips(opened, ranges, tmp_path / "evidence.mp4")


def test_a_clip_of_other_pictures_than_the_library_keeps_is_none(tmp_path: Path) -> None:
    film, other = tiny_film(tmp_path / "film.mp4", 6, 1), tiny_film(tmp_path / "other.mp4", 6, 2)
    library = library_of(tmp_path / "library", [film])
    video, out = library.videos()[0], tmp_path / "clip"
    assert cut_exactly(library, video, film, out, [(4.0, 5.0), (1.0, 2.0)], subtitles=True).path.exists()
    assert cut_copied(library, Moment(video, 1.0, 2.0), film, out, subtitles=True).path.exists()
    with pytest.raises(WrongClip, match="shows another picture"):
        cut_exactly(library, video, other, out, [(4.0, 5.0), (1.0, 2.0)], subtitles=True)
    with pytest.raises(WrongClip, match="shows another picture"):
        cut_copied(library, Moment(video, 1.0, 2.0), other, out, subtitles=True)
    assert not list(tmp_path.glob("clip*"))


@pytest.mark.slow
@needs_ffmpeg
def test_a_film_whose_clock_is_reset_is_cut_where_the_library_has_it(tmp_path: Path) -> None:
    part = grey_film(tmp_path / "part.ts", *H264, "-c:a", "aac", length_s=6)
    film = tmp_path / "film.ts"
    film.write_bytes(2 * part.read_bytes())
    library, whole = library_of(tmp_path / "library", [film]), pictures(film)
    video = library.videos()[0]
    start_s, end_s = video.start_s + 7.6, video.start_s + 9.8
    cut = cut_exactly(library, video, film, tmp_path / "clip", [(start_s, end_s)], subtitles=False)
    first_s, last_s = start_s + video.zero_s, end_s + video.zero_s
    asked = [grey for begin, until, grey in whole if until - first_s > 2e-5 and last_s - begin > 2e-5]
    assert [grey for *_, grey in pictures(cut.path)] == asked != []
    with pytest.raises((VideoError, WrongClip)):
        cut_copied(library, Moment(video, start_s, end_s), film, tmp_path / "copied", subtitles=False)
    assert not list(tmp_path.glob("copied*"))

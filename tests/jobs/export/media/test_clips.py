"""Clips of moments, opened again by PyAV: pictures, sound and subtitles, and the rows of those that failed."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import av
import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.media import MANIFEST, CutWay, export_clips, export_joined
from kinodex.jobs.export.moments import Moment
from kinodex.pipeline.subtitles import embedded_lines


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


@pytest.fixture(scope="module")
def beeping(small_library: Path) -> Library:
    """A library of films of 6 s, the first with sound."""
    return Library.open(str(small_library))


def moment(library: Library, title: str, start_s: float, end_s: float, label: str = "") -> Moment:
    return Moment(library.video(title), start_s, end_s, label)


def seconds(path: Path) -> float:
    """Length of a film by its pictures."""
    with av.open(str(path)) as container:
        times = [frame.time or 0.0 for frame in container.decode(video=0)]
        return times[-1] - times[0]


def test_a_clip_each_and_a_manifest(opened: Library, tmp_path: Path) -> None:
    line = next(each for each in opened.transcript(opened.video("film-01").video_id) if "code word" in each.text)
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


def test_a_copied_clip_begins_at_a_key_frame_with_its_sound(beeping: Library, tmp_path: Path) -> None:
    (row,) = export_clips(beeping, [moment(beeping, "film-0", 2.0, 4.0)], tmp_path / "out", CutWay())
    assert (row.way, row.has_sound) == ("copied", True)
    assert row.start_s is not None and row.start_s <= 2.0 < 4.0 <= (row.end_s or 0.0) + 0.05
    with av.open(str(tmp_path / "out" / row.file)) as container:
        assert container.streams.audio


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


def test_a_clip_that_fails_in_a_way_that_nobody_foresaw_is_a_row(opened: Library, tmp_path: Path) -> None:
    good = moment(opened, "film-02", 1.0, 2.0)
    odd = replace(good, video=replace(good.video, zero_s=None))  # type: ignore[arg-type]
    rows = export_clips(opened, [odd, good], tmp_path / "out", CutWay())
    assert [bool(row.file) for row in rows] == [False, True]
    assert rows[0].error.startswith("TypeError: ")
    joined = export_joined(opened, [odd], tmp_path / "joined")
    assert joined[0].error.startswith("TypeError: ")


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

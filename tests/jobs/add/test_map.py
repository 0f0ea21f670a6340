"""A user's function over frames, segments and videos: its columns, what it is refused for, and runs that were ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kinodex as front
from kinodex.index.added_rows import audit_added
from kinodex.index.library import Library
from kinodex.jobs.add.functions import function_of
from kinodex.jobs.add.run import VIDEOS_A_COMMIT, add
from kinodex.jobs.add.stages import Map
from tests.support.command import json_of
from tests.support.libraries.random_library import SETTINGS, fingerprint, made

FUNCTION = '''
import numpy as np

CALLS = {calls!r}


def brightness(pictures, video):
    """Mean brightness of each frame."""
    with open(CALLS, "a") as calls:
        calls.write(video.video_id + "\\n")
    return pictures.mean(axis=(1, 2, 3))
'''


def many(frame_no, vectors):
    return {"number": frame_no, "norm": np.linalg.norm(vectors, axis=1).astype(np.float32), "half": vectors[:, :2]}


def steps(vectors, start_s, end_s):
    return pa.array([f"{len(each)} in {b - a:.0f} s" for each, a, b in zip(vectors, start_s, end_s, strict=True)])


def shape(pictures):
    return [{"shown": len(each), "first_red": float(each[0][..., 0].mean()), "tall": True} for each in pictures]


@pytest.fixture
def opened(library: Library) -> front.Library:
    return front.open(library.uri)


def test_columns_of_every_kind_are_those_of_a_plain_loop(library: Library, opened: front.Library) -> None:
    film = opened.videos()[0]
    assert opened.map(many, batch=4).rows == opened.info().frames
    rows = opened.mapped("many", where=f"video_id = '{film.video_id}'")
    held = opened.vectors(film)
    assert rows.schema.names == ["video_id", "frame_no", "time_s", "number", "norm", "half"]
    assert rows["number"].to_pylist() == rows["frame_no"].to_pylist() == held.frame_no.tolist()
    assert rows["time_s"].to_pylist() == held.time_s.tolist()
    assert np.allclose(rows["half"].to_pylist(), held.vectors[:, :2]) and rows.schema.field("norm").type == pa.float32()
    assert rows.schema.metadata[b"source"].decode().startswith("def many(frame_no, vectors):")
    opened.map(steps, "segments", "pace")
    assert [row["end_s"] for row in opened.mapped("pace").to_pylist() if row["video_id"] == film.video_id] == [
        each.end_s for each in opened.segments(film)
    ]
    pace = opened.mapped("pace", where="pace LIKE '% in 2 s' AND start_s < 3")
    assert set(pace["pace"].to_pylist()) == {"2 in 2 s"}, opened.mapped("pace").to_pylist()
    opened.map(shape, "videos", pictures_each=3)
    assert set(opened.mapped("shape")["shown"].to_pylist()) == {3}
    assert {row.video_id for row in library.select(where="tall AND first_red >= 0") or ()} == library.video_ids()
    assert audit_added(library, ["map"], deep=True).broken == ()
    library.writer.discard(film.video_id)
    assert film.video_id not in opened.mapped("many")["video_id"].to_pylist()


def test_only_new_videos_and_another_function_is_refused(kinodex, library: Library, tmp_path: Path) -> None:
    file, calls = tmp_path / "mine.py", tmp_path / "calls"
    file.write_text(FUNCTION.format(calls=str(calls)))
    command = ("add", "map", library.uri, f"{file}:brightness", "--into", "light")
    ids = [row.video_id for row in library.videos()]
    assert json_of(kinodex, *command, "--where", "title = 'film-0'")["added"] == 1
    assert json_of(kinodex, *command)["added"] == len(ids) - 1
    assert json_of(kinodex, *command)["added"] == 0
    assert sorted(calls.read_text().split()) == sorted(ids)  # each once
    file.write_text(file.read_text().replace("pictures.mean(", "255 - pictures.mean("))
    refused = kinodex(*command)
    assert (refused.code, "the function is another now" in refused.err) == (2, True)
    before = library.additions.mapped("light")["light"].to_numpy()
    assert json_of(kinodex, *command, "--replace")["added"] == len(ids)
    assert np.allclose(255 - before, library.additions.mapped("light")["light"].to_numpy())
    assert [(each.stage, each.model, each.videos) for each in library.info().added] == [("map", "light", len(ids))]


def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{number:08d}", 3, number) for number in range(2 * VIDEOS_A_COMMIT)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    assert library.writer.complete([video.video_row() for video in videos]) == ()
    calls: list[str] = []

    def count(vectors, video):
        if len(calls) == VIDEOS_A_COMMIT + 3:
            calls.append("ended")
            raise KeyboardInterrupt
        calls.append(video.video_id)
        return np.arange(len(vectors))

    with pytest.raises(KeyboardInterrupt):
        add(library, Map(function=count, into="count"))
    written, calls[:] = calls[:VIDEOS_A_COMMIT], ["ended"] * (VIDEOS_A_COMMIT + 4)
    assert sorted(library.additions.mapped("count")["video_id"].unique().to_pylist()) == sorted(written)
    report = add(library, Map(function=count, into="count"))
    assert (report.added, report.failed) == (VIDEOS_A_COMMIT, 0)
    assert not set(written).intersection(calls)  # nothing that was written is computed again
    assert library.additions.mapped("count").num_rows == 3 * len(videos)


def wrong_type(frame_no):
    return [str(frame_no[0]) if frame_no[0] else 1.5] * len(frame_no)


@pytest.mark.parametrize(
    ("function", "more", "said"),
    [
        (many, {"over": "shots"}, "give one of frames, segments, videos"),
        (many, {"into": "Not a name"}, "small letters, digits and _"),
        (many, {"over": "segments"}, "some of pictures, vectors, start_s, end_s, video, by these names"),
        (lambda: None, {"into": "none"}, "with no parameter"),
        (lambda vectors: [1], {"into": "short"}, "returned 1 values of short for 2 frames"),
        (lambda vectors: {"time_s": vectors[:, 0]}, {"into": "taken"}, "a column 'time_s'"),
        (lambda vectors: [object()] * len(vectors), {"into": "odd"}, "that Arrow cannot hold"),
        (wrong_type, {}, "are not all of one type"),
        (many, {"where": "no_such = 1"}, "no_such"),
        (np.linalg.norm, {}, "with a parameter x"),
        (eval("lambda vectors: vectors"), {"into": "unread"}, "cannot read the text of <lambda>"),
    ],
)
def test_what_is_refused_says_why(opened: front.Library, function, more, said: str) -> None:
    with pytest.raises(front.KinodexError, match=said):
        opened.map(function, batch=2, **more)


def test_a_file_that_has_no_such_function(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION.format(calls="calls"))
    with pytest.raises(front.UsageError, match=r"of functions .* has brightness"):
        function_of(f"{tmp_path}/mine.py:darkness")
    with pytest.raises(front.UsageError, match=r"write FILE\.py:NAME"):
        function_of("mine.py")

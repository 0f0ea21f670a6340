"""A benchmark's videos found in a library, a part of its questions, and `kinodex eval check`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.core.question import Question
from index.rows import VideoRow
from jobs.benchmarks.match_videos import match_videos, read_id_map
from jobs.benchmarks.sample import Missing, Sample, Target
from jobs.errors import UsageError
from tests.support import benchmark_files as kit
from tests.support.text_library import text_library, text_video_id


def item(item_id: str, video: str, *kinds: str) -> Sample:
    return Sample(item_id, video, Question("What?", ("a", "b")), Target(0), {"type": kinds} if kinds else {})


def row(video_id: str, uri: str, title: str | None = None) -> VideoRow:
    return VideoRow(
        video_id=video_id,
        uri=uri,
        title=title if title is not None else Path(uri).stem,
        start_s=0.0,
        duration_s=10.0,
        fps=1.0,
        width_px=4,
        height_px=4,
        codec="none",
        frames=10,
        segments=0,
        transcript_lines=0,
        decode_errors=0,
        sample_fps=1.0,
        space="words",
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def found(video: str, rows: Sequence[VideoRow], id_map: dict[str, str] | None = None, episodes: bool = False) -> object:
    """The ids that one video of a benchmark is, or why it is none."""
    matching = match_videos([item("1", video)], rows, id_map, episodes)
    return matching.videos.get(video) or matching.missing[0].why


@pytest.mark.parametrize(
    "called",
    ["id1", "My film", "clip.one", "clip.one.mp4", "b/clip.one", "a/b/clip.one.mp4"],
)
def test_a_video_goes_by_id_title_and_the_last_parts_of_its_uri(called: str) -> None:
    rows = [row("id1", "s3://bucket/a/b/clip.one.mp4", "My film"), row("id2", "/x/clip.two.mp4")]
    assert found(called, rows) == ("id1",)


def test_a_part_of_a_name_is_not_the_name_and_case_counts() -> None:
    rows = [row("id1", "/x/aBc.mp4")]
    assert found("abc", rows) == "no video of the library has the name abc"
    assert found("aB", rows) == "no video of the library has the name aB"


def test_nextqa_files_are_found_by_its_published_map(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "map_vid_vidorID.json", {"3238737531": "1164/3238737531", "2": "1000/77"})
    rows = [row("id1", "/data/1164/3238737531.mp4"), row("id2", "/data/1165/3238737531.mp4", "77")]
    id_map = read_id_map(tmp_path / "map_vid_vidorID.json")
    assert found("3238737531", rows, id_map) == ("id1",)
    assert found("2", rows, id_map) == "no video of the library has the name 1000/77"
    assert found("77", rows, id_map) == ("id2",)


def test_two_videos_of_a_name_are_neither() -> None:
    rows = [row("id1", "/data/1164/323.mp4"), row("id2", "/data/1165/323.mp4")]
    why = "2 videos of the library have the name 323: /data/1164/323.mp4, /data/1165/323.mp4"
    assert found("323", rows) == why
    assert found("323", rows, {"323": "id2"}) == ("id2",)


def test_every_question_of_a_missing_video_is_counted() -> None:
    items = [item("1", "here"), item("2", "gone"), item("3", "gone"), item("4", "lost")]
    matching = match_videos(items, [row("id1", "here.webm")], None, False)
    assert matching.videos == {"here": ("id1",)}
    gone, lost = (f"no video of the library has the name {name}" for name in ("gone", "lost"))
    assert matching.missing == (Missing("gone", gone, 2), Missing("lost", lost, 1))


def test_an_episode_is_all_its_clips_in_order_and_no_clip_of_another() -> None:
    names = ["s05e06_seg02_clip_00", "s05e06_seg01_clip_01", "s05e07_seg01_clip_00", "s05e061_seg01_clip_00"]
    rows = [row(name, f"/tvqa/{name}.mp4") for name in names]
    assert found("s05e06", rows, episodes=True) == ("s05e06_seg01_clip_01", "s05e06_seg02_clip_00")
    assert found("s05e06", rows) == "no video of the library has the name s05e06"
    assert found("s05e06", [*rows, row("whole", "/x/s05e06.mkv")], episodes=True) == ("whole",)
    folders = [row("one", "/tvqa/s05e08/clip_00.mp4"), row("two", "/tvqa/s05e08/clip_01.mp4")]
    assert found("s05e08", folders, episodes=True) == ("one", "two")


@pytest.mark.parametrize("name", ["map.csv", "map.json"])
def test_maps_of_two_columns_or_an_object(name: str, tmp_path: Path) -> None:
    text = '{"a": "b/c", "d": 7}' if name.endswith("json") else "a,b/c\nd,7\n"
    (tmp_path / name).write_text(text)
    assert read_id_map(tmp_path / name) == {"a": "b/c", "d": "7"}


@pytest.mark.parametrize(
    ("name", "text"), [("m.csv", "a\n"), ("m.csv", ""), ("m.json", "[1]"), ("m.json", '{"a": []}'), ("m.json", "{")]
)
def test_a_map_of_something_else_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=r"m\.(csv|json)"):
        read_id_map(tmp_path / name)


def test_captions_imported_under_a_benchmark_s_names_are_its_videos(tmp_path: Path) -> None:
    library = text_library(tmp_path / "library", {"uid-1": [(0.0, 1.0, "C mends a lamp")]})
    assert found("uid-1", library.videos()) == (text_video_id("uid-1"),)
